import { describe, expect, it } from 'bun:test';
import {
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

const AT = '2026-03-04T05:06:07Z';

describe('a record of the upstream', () => {
  it.each([undefined, null, 'music', {}, [null], [[]], ['music']])('never breaks the page: %j', (value) => {
    expect(readMusicModels(value)).toEqual([]);
    expect(readCreations(value)).toEqual([]);
    for (const each of readActivity(value)) expect(each).toMatchObject({ credits: 0, at: undefined });
    expect(readBalance(value)).toBeUndefined();
    expect(readSummary(value)).toEqual({ tracks: 0, seconds: 0, credits: 0 });
    expect(readName(value)).toBe('');
    const no = { id: '', prompt: '', model: '', seconds: 0, createdAt: undefined };
    expect(readCreation(value)).toEqual({
      ...no,
      isGenerating: false,
      isInstrumental: false,
      isPublic: false,
    });
  });

  it('may be in a list inside an object, and is left out of the creations without an id', () => {
    const items = [{ prompt: 'lost' }, { id: 7 }];
    expect(readCreations({ total: 1, items }).map(({ id }) => id)).toEqual(['7']);
    expect(readActivity({ activity: [{ type: 'x' }, { type: 'y' }] })).toHaveLength(2);
  });

  it('of a model makes music when its name, id or one of its abilities says so', () => {
    const models = readMusicModels([
      { id: '1', modalities: ['text', 'music'], name: 'One', credits_per_second: 0.5 },
      { id: '2', capabilities: 'Music', credits_per_second: '1' },
      { id: 'acme-music-2' },
      { id: '3', name: 'Lyra Music' },
      { id: 'acme-voice', name: 'Voice', description: 'no music', capabilities: [7] },
      { name: 'Music without an id' },
    ]);
    expect(models.map(({ id, name, creditsPerSecond }) => [id, name, creditsPerSecond])).toEqual([
      ['1', 'One', 0.5],
      ['2', '2', undefined],
      ['acme-music-2', 'acme-music-2', undefined],
      ['3', 'Lyra Music', undefined],
    ]);
  });

  it('of a creation has what the studio shows of it', () => {
    const order = { prompt: 'Rain', model: 'music-1', music_length_ms: 30_000, force_instrumental: true };
    const fields = { id: '7', prompt: 'Rain', model: 'music-1', seconds: 30, createdAt: new Date(AT) };
    const record = { ...order, id: 7, is_public: true, created_at: AT };
    const isOrdered = { isGenerating: false, isInstrumental: true, isPublic: true };
    expect(readCreation(record)).toEqual({ ...fields, ...isOrdered });
    expect(readCreation({ title: 'Rain' }).prompt).toBe('Rain');
    for (const is_public of ['true', 1, 'yes']) expect(readCreation({ is_public }).isPublic).toBe(false);
    const statuses = ['generating', 'processing', 'pending', 'queued', 'ready', 'failed'];
    const made = statuses.filter((status) => readCreation({ status }).isGenerating);
    expect(made).toEqual(statuses.slice(0, 4));
  });

  it('of an account has balance, month, activity and name, and no date where there is none', () => {
    expect(readBalance({ balance: 0, unit: 'credits' })).toBe(0);
    for (const balance of ['12', Number.NaN]) expect(readBalance({ balance })).toBeUndefined();
    const summary = readSummary({ generations: 2, music_length_ms: 90_000, credits_spent: 9 });
    expect(summary).toEqual({ tracks: 2, seconds: 90, credits: 9 });
    const activity = { type: 'generation', description: 'Rain', credits: 3 };
    expect(readActivity([{ ...activity, created_at: AT }])).toEqual([{ ...activity, at: new Date(AT) }]);
    expect(readName({ name: 'Ada', email: 'ada@example.test' })).toBe('Ada');
    expect(readName({ name: '', email: 'ada@example.test' })).toBe('ada@example.test');
    for (const text of ['', 'yesterday', null]) expect(readDate(text)).toBeUndefined();
  });
});

describe('the address of a shared track', () => {
  it('leads to that track and to no other, and nowhere without an id', () => {
    const id = 'a b&c=d/../ü#';
    const address = shareAddress('https://studio.test', id);
    expect(address).toStartWith('https://studio.test/?listen=');
    expect(sharedId(address)).toBe(id);
    for (const path of ['/', '/?listen=', '/?code=x#listen=c1']) {
      expect(sharedId(`https://studio.test${path}`)).toBeUndefined();
    }
  });
});
