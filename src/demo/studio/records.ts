/** Reads the fields of the upstream's data that the Studio shows. Every field may be missing. */

export interface Model {
  readonly id: string;
  readonly name: string;
  readonly creditsPerSecond: number | undefined;
  /** False if the upstream lists what the model can do, and this is not among it. */
  readonly canBeInstrumental: boolean;
}

export interface Creation {
  readonly id: string;
  /** The name that its owner has given it, by default the prompt. */
  readonly title: string;
  readonly prompt: string;
  /** Who has made it. Empty if the upstream does not say. */
  readonly author: string;
  /** Empty if the upstream does not say. */
  readonly model: string;
  readonly seconds: number;
  readonly isInstrumental: boolean;
  readonly isGenerating: boolean;
  readonly isPublic: boolean;
  readonly createdAt: Date | undefined;
}

/** What the next tracks can start from. */
export interface Recording {
  readonly id: string;
  readonly name: string;
  readonly seconds: number;
  /** Undefined if none was heard. */
  readonly key: { readonly tonic: string; readonly mode: 'major' | 'minor' } | undefined;
  /** Beats a minute. Undefined if none was heard. */
  readonly tempo: number | undefined;
  readonly isChosen: boolean;
}

export interface Activity {
  readonly type: string;
  readonly description: string;
  readonly credits: number;
  readonly at: Date | undefined;
}

export interface Summary {
  readonly tracks: number;
  readonly seconds: number;
  readonly credits: number;
}

export function readMusicModels(value: unknown): Model[] {
  return listIn(value)
    .filter(isMusicModel)
    .map(fieldsOf)
    .filter((fields) => textIn(fields, 'id') !== '')
    .map((fields) => ({
      id: textIn(fields, 'id'),
      name: textIn(fields, 'name') || textIn(fields, 'id'),
      creditsPerSecond: numberIn(fields, 'credits_per_second'),
      canBeInstrumental: mayDo(fields.get('capabilities'), 'instrumental'),
    }));
}

/** A music model has the word "music" in its modalities, capabilities, id or name. */
export function isMusicModel(value: unknown): boolean {
  const fields = fieldsOf(value);
  const said = [fields.get('modalities'), fields.get('capabilities'), fields.get('id'), fields.get('name')];
  return said.flat().some((word) => typeof word === 'string' && word.toLowerCase().includes('music'));
}

export function readCreations(value: unknown): Creation[] {
  return listIn(value)
    .map(readCreation)
    .filter(({ id }) => id !== '');
}

export function readCreation(value: unknown): Creation {
  const fields = fieldsOf(value);
  return {
    id: textIn(fields, 'id'),
    title: textIn(fields, 'title') || textIn(fields, 'prompt'),
    prompt: textIn(fields, 'prompt') || textIn(fields, 'title'),
    author: textIn(fields, 'author'),
    model: textIn(fields, 'model'),
    seconds: (numberIn(fields, 'music_length_ms') ?? 0) / 1_000,
    isInstrumental: fields.get('force_instrumental') === true,
    isGenerating: ['generating', 'processing', 'pending', 'queued'].includes(textIn(fields, 'status')),
    isPublic: fields.get('is_public') === true,
    createdAt: readDate(textIn(fields, 'created_at')),
  };
}

export function readRecordings(value: unknown): Recording[] {
  return listIn(value)
    .map(fieldsOf)
    .filter((fields) => textIn(fields, 'id') !== '')
    .map((fields) => {
      const key = fieldsOf(fields.get('key'));
      const mode = key.get('mode');
      return {
        id: textIn(fields, 'id'),
        name: textIn(fields, 'name'),
        seconds: (numberIn(fields, 'length_ms') ?? 0) / 1_000,
        key: mode === 'major' || mode === 'minor' ? { tonic: textIn(key, 'tonic'), mode } : undefined,
        tempo: numberIn(fields, 'tempo_bpm'),
        isChosen: fields.get('is_chosen') === true,
      };
    });
}

export function readActivity(value: unknown): Activity[] {
  return listIn(value)
    .map(fieldsOf)
    .map((fields) => ({
      type: textIn(fields, 'type'),
      description: textIn(fields, 'description'),
      credits: numberIn(fields, 'credits') ?? 0,
      at: readDate(textIn(fields, 'created_at')),
    }));
}

/** The credits that are left. Undefined if the upstream does not say. */
export function readBalance(value: unknown): number | undefined {
  return numberIn(fieldsOf(value), 'balance');
}

export function readSummary(value: unknown): Summary {
  const fields = fieldsOf(value);
  return {
    tracks: numberIn(fields, 'generations') ?? 0,
    seconds: (numberIn(fields, 'music_length_ms') ?? 0) / 1_000,
    credits: numberIn(fields, 'credits_spent') ?? 0,
  };
}

/** What tells the account of a profile from others. Empty if nothing does. */
export function readAccountId(profile: unknown): string {
  return textIn(fieldsOf(profile), 'id') || readName(profile);
}

/** The person's name or email address in a profile. Empty if there is neither. */
export function readName(profile: unknown): string {
  const fields = fieldsOf(profile);
  return textIn(fields, 'name') || textIn(fields, 'email');
}

export function readDate(text: string | null): Date | undefined {
  const date = new Date(text ?? '');
  return Number.isNaN(date.getTime()) ? undefined : date;
}

type Fields = ReadonlyMap<string, unknown>;

function fieldsOf(value: unknown): Fields {
  return new Map(Object.entries(value ?? {}));
}

/** Finds a list that may be wrapped in an object: `{"items": [...]}`. */
function listIn(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  return [...fieldsOf(value).values()].find(Array.isArray) ?? [];
}

function mayDo(capabilities: unknown, capability: string): boolean {
  return !Array.isArray(capabilities) || capabilities.includes(capability);
}

function textIn(fields: Fields, name: string): string {
  const value = fields.get(name);
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}

function numberIn(fields: Fields, name: string): number | undefined {
  const value = fields.get(name);
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}
