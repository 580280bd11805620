/** Draws a track's waveform and its playback position. It does not play the track. */

import WaveSurfer from 'wavesurfer.js';
import type { Peaks } from './peaks.ts';

export interface Waveform {
  /** Without peaks, draws a flat line. */
  draw(peaks: Peaks | undefined): void;
  /** @param share of the track, from 0 to 1 */
  moveTo(share: number): void;
}

const HEIGHT = 56;
/** The colours of the page follow these preferences of the person. */
const COLOUR_QUERIES = ['(prefers-color-scheme: dark)', '(forced-colors: active)'];
const QUIET: Peaks = new Array(600).fill(0);

/** `nonce` allows wavesurfer.js its `style` element under the page's Content-Security-Policy. */
export function createWaveform(container: HTMLElement, nonce: string): Waveform {
  const surfer = WaveSurfer.create({
    container,
    // This element is never played. Without it, wavesurfer.js would add an `audio` element to the page.
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
  for (const query of COLOUR_QUERIES) {
    const colourScheme = container.ownerDocument.defaultView?.matchMedia(query);
    colourScheme?.addEventListener('change', () => surfer.setOptions(colours(container)));
  }
  return {
    draw(peaks = QUIET) {
      // The duration of 1 makes each time a share of the track. With peaks given, nothing is fetched.
      surfer.load('', [[...peaks]], 1);
    },
    moveTo: (share) => surfer.setTime(share),
  };
}

/** A canvas cannot use custom properties. `@property` registers these as colours, so that they are resolved. */
function colours(container: HTMLElement) {
  const style = container.ownerDocument.defaultView?.getComputedStyle(container);
  return {
    waveColor: style?.getPropertyValue('--waveform') ?? '',
    progressColor: style?.getPropertyValue('--waveform-heard') ?? '',
  };
}
