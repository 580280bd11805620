import { expect, it } from 'bun:test';
import {
  readActivity,
  readBalance,
  readCreation,
  readCreations,
  readMusicModels,
  readName,
  readSummary,
} from '../../../src/demo/studio/records.ts';

it.each([undefined, 'music', {}, [null], ['music']])(
  'no record of the upstream breaks the page: %j',
  (value) => {
    expect([readMusicModels(value), readCreations(value)]).toEqual([[], []]);
    for (const each of readActivity(value)) expect(each).toMatchObject({ credits: 0, at: undefined });
    expect([readBalance(value), readName(value)]).toEqual([undefined, '']);
    expect(readSummary(value)).toEqual({ tracks: 0, seconds: 0, credits: 0 });
    expect(readCreation(value)).toMatchObject({ id: '', title: '', seconds: 0, isGenerating: false });
  },
);

it('a model makes music when its name, id or one of its abilities says so', () => {
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
