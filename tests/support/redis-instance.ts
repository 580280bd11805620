/** A gateway process that shares its refreshes through Redis. */

import { eventually } from './eventually.ts';
import { freePorts } from './free-ports.ts';
import { startGatewayProcess } from './gateway-process.ts';
import { parseSamples } from './metrics.ts';
import { PATIENT_WITH_REDIS } from './redis.ts';

export type RedisInstance = Awaited<ReturnType<typeof startInstance>>;

/** A gateway process with this upstream and Redis, and whether it can use Redis. */
export async function startInstance(
  UPSTREAM_URL: string,
  REDIS_URL: string,
  others: Record<string, string> = {},
) {
  const metricsPort = await freePorts(1);
  const own = { BUN_OPTIONS: PATIENT_WITH_REDIS, METRICS_PORT: String(metricsPort) };
  const started = await startGatewayProcess({ ...own, UPSTREAM_URL, REDIS_URL, ...others });
  const isRedisUp = async () => {
    const metrics = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
    return parseSamples(metrics).get('redis_up') === 1;
  };
  return { ...started, isRedisUp };
}

/** Starts two of them, and waits until both can use Redis. */
export async function startTwo(...settings: Parameters<typeof startInstance>) {
  await using stack = new AsyncDisposableStack();
  const both = [
    stack.use(await startInstance(...settings)),
    stack.use(await startInstance(...settings)),
  ] as const;
  for (const { isRedisUp } of both) await eventually(isRedisUp, 'both instances to reach Redis');
  stack.move();
  return both;
}
