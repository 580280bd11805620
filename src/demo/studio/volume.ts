/** The volume of the player, which the browser remembers, a button that mutes it, and arrow keys. */

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

  function change(): void {
    audio.muted = false;
    audio.volume = slider.valueAsNumber;
    memory.setItem(STORAGE_KEY, slider.value);
  }

  slider.addEventListener('input', change);
  // For the buttons of the player: a slider moves by these keys itself, also that of the position.
  root.addEventListener('keydown', (event) => {
    const { key, target, altKey, ctrlKey, metaKey, shiftKey } = event;
    const isArrow = key === 'ArrowUp' || key === 'ArrowDown';
    if (!isArrow || altKey || ctrlKey || metaKey || shiftKey || target instanceof HTMLInputElement) return;
    event.preventDefault();
    if (key === 'ArrowUp') slider.stepUp();
    else slider.stepDown();
    change();
  });
  mute.addEventListener('click', () => {
    audio.muted = !audio.muted;
  });
  audio.addEventListener('volumechange', show);
  const remembered = Number(memory.getItem(STORAGE_KEY) ?? 1);
  audio.volume = remembered >= 0 && remembered <= 1 ? remembered : 1;
  show();
}
