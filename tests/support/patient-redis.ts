/**
 * Preloaded into a gateway process: gives Redis a minute instead of half a second, or what `REDIS_PATIENCE` makes of that,
 * so that a busy machine is not taken for a Redis that is down. Instances that miss Redis refresh apart.
 */

import { systemClock } from '../../src/gateway/refresh/clock.ts';
import { COMMAND_TIMEOUT_MS } from '../../src/gateway/refresh/redis-connection.ts';

const { every } = systemClock;
const TIMES = Number(process.env['REDIS_PATIENCE'] ?? 120);

/** Leases are prolonged at a longer interval than any time limit of Redis has. */
systemClock.every = (ms, work) => every(ms <= COMMAND_TIMEOUT_MS ? TIMES * ms : ms, work);
