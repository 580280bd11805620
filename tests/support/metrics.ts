/** Reads metrics in the text form that Prometheus scrapes. */

import type { Registry } from 'prom-client';

export async function samplesOf(registry: Registry) {
  return parseSamples(await registry.metrics());
}

/** Value by metric and labels, such as `name{label="value"}`: only the gateway's own, without their prefix. */
export function parseSamples(text: string): ReadonlyMap<string, number> {
  const lines = text.matchAll(/^music_gateway_(\w+(?:\{.*\})?) (\S+)$/gm);
  return new Map([...lines].map(([, name = '', value]) => [name, Number(value)]));
}
