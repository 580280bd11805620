/** The models the sandbox offers; only some of them make music. */

import type { SandboxData } from '../../../client/upstream-data.ts';

type Model = SandboxData['model'];

export const MODELS: readonly Model[] = [
  {
    id: 'sandbox-speech-1',
    name: 'Sandbox Speech 1',
    modalities: ['speech'],
    capabilities: ['text-to-speech'],
    credits_per_second: 1,
  },
  {
    id: 'sandbox-music-2',
    name: 'Sandbox Music 2',
    modalities: ['music'],
    capabilities: ['text-to-music', 'instrumental'],
    credits_per_second: 2,
  },
  {
    id: 'sandbox-music-1',
    name: 'Sandbox Music 1',
    modalities: ['music'],
    capabilities: ['text-to-music'],
    credits_per_second: 1,
  },
  {
    id: 'sandbox-image-1',
    name: 'Sandbox Image 1',
    modalities: ['image'],
    capabilities: ['text-to-image'],
    credits_per_second: 0,
  },
];

export function findMusicModel(id: string): Model | undefined {
  return MODELS.find((model) => model.id === id && model.modalities.includes('music'));
}
