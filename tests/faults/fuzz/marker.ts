/** Marks each request, so that a call or an answer can be traced to the request it belongs to. */

import { mix } from './random.ts';

const MARKERS = /m[0-9a-z]{6}x[0-9a-f]{8}/g;

/** Its second half is a checksum: a mutation of one marker never makes another one. */
export function markerOf(seed: number, index: number): string {
  const checksum = mix(mix(seed | 0) ^ mix(index + 0x51ed)) >>> 0;
  return `m${index.toString(36).padStart(6, '0')}x${checksum.toString(16).padStart(8, '0')}`;
}

/** The genuine markers in a text, each once. */
export function markersIn(text: string, seed: number): string[] {
  const found = new Set(text.match(MARKERS));
  return [...found].filter((marker) => markerOf(seed, indexOf(marker)) === marker);
}

export function indexOf(marker: string): number {
  return Number.parseInt(marker.slice(1, 7), 36);
}
