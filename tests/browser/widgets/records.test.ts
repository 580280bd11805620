import { describe, expect, it } from 'bun:test';
import {
  isMusicModel,
  readActivity,
  readBalance,
  readCreation,
  readCreations,
  readDate,
  readMusicModels,
  readName,
  readSummary,
} from '../../../src/demo/studio/records.ts';

/** What an upstream may answer in place of a record or a list. */
const ODD = [undefined, null, 0, true, 'music', {}, [], [null], [[]], ['music'], { data: null }];

describe('what the upstream tells', () => {
  it.each(ODD.map((value) => [value]))('never breaks the page: %j', (value) => {
    expect(readMusicModels(value)).toEqual([]);
    expect(readCreations(value)).toEqual([]);
    for (const { credits, at } of readActivity(value))
      expect({ credits, at }).toEqual({ credits: 0, at: undefined });
    expect(readBalance(value)).toBeUndefined();
    expect(readSummary(value)).toEqual({ tracks: 0, seconds: 0, credits: 0 });
    expect(readName(value)).toBe('');
    expect(readCreation(value)).toEqual({
      id: '',
      prompt: '',
      seconds: 0,
      isGenerating: false,
      isPublic: false,
      createdAt: undefined,
    });
  });

  it('may be a list inside an object', () => {
    expect(readCreations({ total: 1, items: [{ id: 'c1' }] })).toHaveLength(1);
    expect(readActivity({ activity: [{ type: 'x' }, { type: 'y' }] })).toHaveLength(2);
  });
});

describe('a model', () => {
  it.each([
    ['its modalities', { modalities: ['text', 'music'] }, true],
    ['its capabilities', { capabilities: ['music_generation'] }, true],
    ['one capability that is no list', { capabilities: 'Music' }, true],
    ['its id', { id: 'acme-music-2' }, true],
    ['its name', { name: 'Lyra Music' }, true],
    ['nothing', { id: 'acme-voice', name: 'Voice', modalities: ['audio'], capabilities: [7] }, false],
    ['its description alone', { id: 'a', description: 'no music' }, false],
  ])('is one of music by %s', (_by, model, expected) => {
    expect(isMusicModel(model)).toBe(expected);
  });

  it('has its id for a name where it has none, and no price where that is no number', () => {
    const models = readMusicModels([
      { id: 'music-1', name: 'One', credits_per_second: 0.5 },
      { id: 'music-2', credits_per_second: 'much' },
      { name: 'music without an id' },
      { id: 'voice-1' },
    ]);
    expect(models).toEqual([
      { id: 'music-1', name: 'One', creditsPerSecond: 0.5 },
      { id: 'music-2', name: 'music-2', creditsPerSecond: undefined },
    ]);
  });
});

describe('a creation', () => {
  it('is read with what the studio shows of it', () => {
    const creation = readCreation({
      id: 'c1',
      prompt: 'Rain',
      music_length_ms: 30_000,
      status: 'ready',
      is_public: true,
      created_at: '2026-03-04T05:06:07Z',
    });
    expect(creation).toEqual({
      id: 'c1',
      prompt: 'Rain',
      seconds: 30,
      isGenerating: false,
      isPublic: true,
      createdAt: new Date('2026-03-04T05:06:07Z'),
    });
  });

  it('without an id is left out of the list, because nothing can be done with it', () => {
    expect(readCreations([{ prompt: 'lost' }, { id: 7 }]).map(({ id }) => id)).toEqual(['7']);
  });

  it('may call its prompt a title', () => {
    expect(readCreation({ id: 'c1', title: 'Rain' }).prompt).toBe('Rain');
  });

  it.each(['generating', 'processing', 'pending', 'queued'])('is being made when it is %s', (status) => {
    expect(readCreation({ id: 'c1', status }).isGenerating).toBe(true);
  });

  it.each([['ready'], ['failed'], [undefined]])('is not being made when its status is %j', (status) => {
    expect(readCreation({ id: 'c1', status }).isGenerating).toBe(false);
  });

  it.each(['true', 1, 'yes'])('is not public for a value that only resembles a yes: %j', (is_public) => {
    expect(readCreation({ id: 'c1', is_public }).isPublic).toBe(false);
  });
});

describe('the account', () => {
  it('has a balance of 0 when it says so, which is not the same as unknown', () => {
    expect(readBalance({ balance: 0, unit: 'credits' })).toBe(0);
    expect(readBalance({ balance: '12' })).toBeUndefined();
    expect(readBalance({ balance: Number.NaN })).toBeUndefined();
  });

  it('has its month in tracks, seconds and credits', () => {
    const summary = readSummary({ generations: 2, music_length_ms: 90_000, credits_spent: 9 });
    expect(summary).toEqual({ tracks: 2, seconds: 90, credits: 9 });
  });

  it('has its activity with time and cost', () => {
    const [activity] = readActivity([
      { type: 'generation', description: 'Rain', credits: 3, created_at: '2026-03-04T05:06:07Z' },
    ]);
    expect(activity).toEqual({
      type: 'generation',
      description: 'Rain',
      credits: 3,
      at: new Date('2026-03-04T05:06:07Z'),
    });
  });

  it('is a person’s by name, or else by address', () => {
    expect(readName({ name: 'Ada', email: 'ada@example.test' })).toBe('Ada');
    expect(readName({ name: '', email: 'ada@example.test' })).toBe('ada@example.test');
  });
});

describe('a date', () => {
  it.each(['', 'yesterday', null])('that is none is not known: %j', (text) => {
    expect(readDate(text)).toBeUndefined();
  });
});
