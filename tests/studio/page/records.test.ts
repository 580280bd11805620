import { describe, expect, it } from 'bun:test';
import {
  readActivity,
  readBalance,
  readCreation,
  readCreations,
  readMusicModels,
  readName,
  readSummary,
} from '../../../src/demo/studio/records.ts';
import { shareAddress, sharedId } from '../../../src/demo/studio/shared-track.ts';

const NO_TRACK = {
  ...{ id: '', title: '', prompt: '', author: '', model: '', seconds: 0, createdAt: undefined },
  ...{ isGenerating: false, isInstrumental: false, isPublic: false },
};

describe('a record of the upstream', () => {
  it.each([undefined, 'music', {}, [null], ['music']])('never breaks the page: %j', (value) => {
    expect([readMusicModels(value), readCreations(value)]).toEqual([[], []]);
    for (const each of readActivity(value)) expect(each).toMatchObject({ credits: 0, at: undefined });
    expect([readBalance(value), readName(value)]).toEqual([undefined, '']);
    expect(readSummary(value)).toEqual({ tracks: 0, seconds: 0, credits: 0 });
    expect(readCreation(value)).toEqual(NO_TRACK);
  });

  it('of a model makes music when its name, id or one of its abilities says so', () => {
    const models = readMusicModels([
      { id: '1', name: 'One', modalities: ['text', 'music'] },
      { id: '2', capabilities: 'Music' },
      { id: '3', name: 'Music 3' },
      { id: 'acme-music-2' },
      { id: 'acme-voice', name: 'Voice', description: 'no music', capabilities: [7] },
      { name: 'Music without an id' },
    ]);
    expect(models.map(({ name }) => name)).toEqual(['One', '2', 'Music 3', 'acme-music-2']);
  });

  it('of a creation has what a player needs, and is being made while its status says so', () => {
    const texts = { title: 'Snow', prompt: 'Rain', author: 'Ada', model: 'm-1' };
    const sent = { ...texts, id: 7, music_length_ms: 30_000, status: 'queued', is_public: true };
    const read = { ...NO_TRACK, ...texts, id: '7', seconds: 30, isGenerating: true, isPublic: true };
    expect(readCreation(sent)).toEqual(read);
    const ready = readCreation({ ...sent, status: 'ready', title: '' });
    expect(ready).toEqual({ ...read, title: 'Rain', isGenerating: false });
  });
});

it('the address of a shared track leads to that track and to no other, and nowhere without an id', () => {
  const id = 'a b&c=d/../ü#';
  const address = shareAddress('https://studio.test', id);
  expect(address).toStartWith('https://studio.test/?listen=');
  expect(sharedId(address)).toBe(id);
  for (const path of ['/', '/?listen=', '/?code=x#listen=c1'])
    expect(sharedId(`https://studio.test${path}`)).toBeUndefined();
});
