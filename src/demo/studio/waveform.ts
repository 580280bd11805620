/** Draws a track's waveform and how far it has been heard. It has no part in playing it. */

import WaveSurfer from 'wavesurfer.js';
import type { Peaks } from './peaks.ts';

export interface Waveform {
  /** Without peaks: a quiet line. */
  draw(peaks: Peaks | undefined): void;
  /** A share of the track, from 0 to 1. */
  moveTo(share: number): void;
}

const HEIGHT = 56;
const QUIET: Peaks = new Array(600).fill(0);

/** `nonce` allows wavesurfer.js its `style` element under the page's Content-Security-Policy. */
export function createWaveform(container: HTMLElement, nonce: string): Waveform {
  const surfer = WaveSurfer.create({
    container,
    // Never played: the player has its own, and a second one would be in the page otherwise.
    media: container.ownerDocument.createElement('audio'),
    height: HEIGHT,
    barWidth: 3,
    barGap: 2,
    barRadius: 2,
    barMinHeight: 3,
    cursorWidth: 0,
    interact: false,
    hideScrollbar: true,
    cspNonce: nonce,
    ...colours(container),
  });
  const schemes = container.ownerDocument.defaultView?.matchMedia('(prefers-color-scheme: dark)');
  schemes?.addEventListener('change', () => surfer.setOptions(colours(container)));
  return {
    draw(peaks = QUIET) {
      // A duration of 1, so that a time is a share. It loads nothing: the peaks are here.
      surfer.load('', [[...peaks]], 1);
    },
    moveTo: (share) => surfer.setTime(share),
  };
}

/** A canvas knows no custom properties, so they are read where they are colours already (`@property`). */
function colours(container: HTMLElement) {
  const style = container.ownerDocument.defaultView?.getComputedStyle(container);
  return {
    waveColor: style?.getPropertyValue('--waveform') ?? '',
    progressColor: style?.getPropertyValue('--waveform-heard') ?? '',
  };
}
