/** Markers trace a call or a response to the request it belongs to. */

/** Stands for the marker in what is generated: a request gets a new marker each time it is sent. */
export const PLACEHOLDER = 'mTHE0REQUEST0m';

const MARKERS = /m\d{12}m/g;

/** As long as the placeholder, so that lengths and cuts stay right. */
export function markerOf(index: number): string {
  return `m${String(index).padStart(12, '0')}m`;
}

/** Each marker once. A mutated placeholder is none. */
export function markersIn(text: string): string[] {
  return [...new Set(text.match(MARKERS))];
}
