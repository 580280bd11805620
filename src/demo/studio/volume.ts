/** The volume of the player, which the browser remembers, and a button that mutes it. */

import type { Memory } from './browser-memory.ts';
import { part } from './parts.ts';
import type { Text } from './text.ts';

const STORAGE_KEY = 'studio.volume';

export function connectVolume(root: HTMLElement, { text, memory }: { text: Text; memory: Memory }): void {
  const audio = part<HTMLAudioElement>(root, 'audio');
  const slider = part<HTMLInputElement>(root, 'volume');
  const mute = part(root, 'mute');

  function show(): void {
    slider.value = String(audio.muted ? 0 : audio.volume);
    mute.dataset['state'] = audio.muted || audio.volume === 0 ? 'muted' : 'audible';
    text.write(part(mute, 'label'), audio.muted ? 'unmute' : 'mute');
  }

  slider.addEventListener('input', () => {
    audio.muted = false;
    audio.volume = slider.valueAsNumber;
    memory.setItem(STORAGE_KEY, slider.value);
  });
  mute.addEventListener('click', () => {
    audio.muted = !audio.muted;
  });
  audio.addEventListener('volumechange', show);
  const remembered = Number(memory.getItem(STORAGE_KEY) ?? 1);
  audio.volume = remembered >= 0 && remembered <= 1 ? remembered : 1;
  show();
}
