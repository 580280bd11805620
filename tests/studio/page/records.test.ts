import { expect, it } from 'bun:test';
import { readMusicModels } from '../../../src/demo/studio/records.ts';

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
