/** What to generate. */

/** The fields of `POST /api/music/generate`. */
export interface GenerationOrder {
  /** As `models` names it. */
  readonly model: string;
  /** At most 4,100 characters. */
  readonly prompt: string;
  /** Milliseconds, from 3,000 to 600,000. */
  readonly music_length_ms: number;
  readonly force_instrumental?: boolean | undefined;
  readonly is_public?: boolean | undefined;
}

/** Where an order of the upstream's own form is sent. The gateway knows this path as that of a generation, and no other. */
export type OwnFormPath = '/v1/music' | `/v1/music?${string}`;

const FIELDS = ['model', 'prompt', 'music_length_ms', 'force_instrumental', 'is_public'] as const;

/** A copy: of the upstream's own form all that is sent, and otherwise the fields above without whatever else there is. */
export function copyOrder(order: object, path: OwnFormPath | undefined): object {
  if (path !== undefined) return JSON.parse(JSON.stringify(order));
  const given = new Map<string, unknown>(Object.entries(order));
  return Object.fromEntries(FIELDS.map((name) => [name, given.get(name)]));
}
