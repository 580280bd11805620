/** Reads metrics in the text form that Prometheus scrapes. */

import type { Registry } from 'prom-client';

/** Value by metric and labels, as they are written: `name{label="value"}`. */
type Samples = ReadonlyMap<string, number>;

export async function samplesOf(registry: Registry): Promise<Samples> {
  return parseSamples(await registry.metrics());
}

/** Only the gateway's own, without their prefix. */
export function parseSamples(text: string): Samples {
  const lines = text.matchAll(/^music_gateway_(\w+(?:\{.*\})?) (\S+)$/gm);
  return new Map([...lines].map(([, name = '', value]) => [name, Number(value)]));
}
