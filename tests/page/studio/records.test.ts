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
import { shareAddress, sharedId } from '../../../src/demo/studio/shared-track.ts';

const NO_FIELDS = { id: '', prompt: '', model: '', seconds: 0, createdAt: undefined };
const NOTHING = { ...NO_FIELDS, isGenerating: false, isInstrumental: false, isPublic: false };
/** What an upstream may send in place of a record or a list. */
const ODD = [undefined, null, 'music', {}, [null], [[]], ['music']];
const AT = '2026-03-04T05:06:07Z';

describe('a record of the upstream', () => {
  it('never breaks the page, whatever stands in its place, and may be in a list inside an object', () => {
    for (const value of ODD) {
      expect(readMusicModels(value)).toEqual([]);
      expect(readCreations(value)).toEqual([]);
      for (const each of readActivity(value)) expect(each).toMatchObject({ credits: 0, at: undefined });
      expect(readBalance(value)).toBeUndefined();
      expect(readSummary(value)).toEqual({ tracks: 0, seconds: 0, credits: 0 });
      expect(readName(value)).toBe('');
      expect(readCreation(value)).toEqual(NOTHING);
    }
    expect(readCreations({ total: 1, items: [{ id: 'c1' }] })).toHaveLength(1);
    expect(readActivity({ activity: [{ type: 'x' }, { type: 'y' }] })).toHaveLength(2);
  });
});

describe('a model', () => {
  it('makes music when its name, id or one of its abilities says so', () => {
    const musical = [
      { modalities: ['text', 'music'] },
      { capabilities: 'Music' },
      { id: 'acme-music-2' },
      { name: 'Lyra Music' },
    ];
    const other = { id: 'acme-voice', name: 'Voice', description: 'no music', capabilities: [7] };
    expect([...musical, other].filter(isMusicModel)).toEqual(musical);
  });

  it('has its id for a missing name, and no price that is not a number', () => {
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
    const order = { prompt: 'Rain', model: 'music-1', music_length_ms: 30_000, force_instrumental: true };
    const fields = { id: '7', prompt: 'Rain', model: 'music-1', seconds: 30, createdAt: new Date(AT) };
    const isOrdered = { isGenerating: false, isInstrumental: true, isPublic: true };
    const record = { ...order, id: 7, is_public: true, created_at: AT };
    expect(readCreation(record)).toEqual({ ...fields, ...isOrdered });
    expect(readCreation({ title: 'Rain' }).prompt).toBe('Rain');
    for (const is_public of ['true', 1, 'yes']) expect(readCreation({ is_public }).isPublic).toBe(false);
  });

  it('is being made when its status says so in one of four words', () => {
    const statuses = ['generating', 'processing', 'pending', 'queued', 'ready', 'failed'];
    const made = statuses.filter((status) => readCreation({ status }).isGenerating);
    expect(made).toEqual(statuses.slice(0, 4));
  });

  it('without an id is left out of the list, because nothing can be done with it', () => {
    expect(readCreations([{ prompt: 'lost' }, { id: 7 }]).map(({ id }) => id)).toEqual(['7']);
  });
});

describe('an account', () => {
  it('is read with its balance, month and activity', () => {
    expect(readBalance({ balance: 0, unit: 'credits' })).toBe(0);
    for (const balance of ['12', Number.NaN]) expect(readBalance({ balance })).toBeUndefined();
    const summary = readSummary({ generations: 2, music_length_ms: 90_000, credits_spent: 9 });
    expect(summary).toEqual({ tracks: 2, seconds: 90, credits: 9 });
    const activity = { type: 'generation', description: 'Rain', credits: 3 };
    expect(readActivity([{ ...activity, created_at: AT }])).toEqual([{ ...activity, at: new Date(AT) }]);
  });

  it('has the name of its user, or the address where there is none', () => {
    expect(readName({ name: 'Ada', email: 'ada@example.test' })).toBe('Ada');
    expect(readName({ name: '', email: 'ada@example.test' })).toBe('ada@example.test');
  });

  it('has no date where the upstream sends none', () => {
    for (const text of ['', 'yesterday', null]) expect(readDate(text)).toBeUndefined();
  });
});

describe('the address of a shared track', () => {
  it('leads to that track and to no other, and nowhere without an id', () => {
    const id = 'a b&c=d/../ü#';
    const address = shareAddress('https://studio.test', id);
    expect(address).toStartWith('https://studio.test/?listen=');
    expect(sharedId(address)).toBe(id);
    for (const path of ['/', '/?listen=', '/?code=x#listen=c1'])
      expect(sharedId(`https://studio.test${path}`)).toBeUndefined();
  });
});
