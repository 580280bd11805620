/** Checks whether Redis lets the gateway share its refreshes there. */

import { tryOut } from '../gateway/refresh/redis-commands.ts';
import {
  COMMAND_TIMEOUT_MS,
  openLink,
  type RedisLink,
  refusalWord,
} from '../gateway/refresh/redis-connection.ts';
import { DEADLINE_MS, type Finding, shownAddress } from './finding.ts';
import { redisConnectProblem } from './redis-connect-problem.ts';

const REFUSALS: Readonly<Record<string, string>> = {
  NOAUTH: 'needs a password: put one into the address',
  NOPERM:
    'does not let its user do what the gateway needs: give it +eval +time +get +set +del ~music-gateway:*',
  OOM: 'is full: give it more memory',
  READONLY: 'is a replica, which cannot be written: name its primary',
};

export async function checkRedis(url: string | undefined): Promise<Finding[]> {
  if (url === undefined) return [];
  const redis = `REDIS_URL: ${shownAddress(url)}`;
  // Leaves time to find out why there is no connection.
  const link = openLink(url, DEADLINE_MS / 5);
  const text = `${redis} does not respond within ${DEADLINE_MS / 1000} seconds`;
  const late = Bun.sleep(DEADLINE_MS).then((): Finding[] => [{ level: 'error', text }]);
  const examined = examine(redis, url, link);
  return Promise.race([examined, late]).finally(() => link.close());
}

async function examine(redis: string, url: string, link: RedisLink): Promise<Finding[]> {
  try {
    await link.connect();
  } catch {
    return [{ level: 'error', text: `${redis} ${await redisConnectProblem(url)}` }];
  }
  let fastestMs: number;
  try {
    fastestMs = await roundTripMs(link);
  } catch (error) {
    return [{ level: 'error', text: `${redis} ${refusalText(error)}` }];
  }
  const { version, policy } = await readInfo(link);
  const findings: Finding[] = [
    { level: 'ok', text: `${redis} works${version && `; its version is ${version}`}` },
  ];
  if (policy && policy !== 'noeviction') {
    const text = `${redis} has maxmemory-policy ${policy}, which can delete keys: set it to noeviction`;
    findings.push({ level: 'warning', text });
  }
  if (fastestMs > COMMAND_TIMEOUT_MS) {
    const waits = `the gateway waits for ${COMMAND_TIMEOUT_MS} ms: run one that is closer`;
    findings.push({
      level: 'warning',
      text: `${redis} takes ${Math.round(fastestMs)} ms to respond; ${waits}`,
    });
  }
  return findings;
}

/** Returns the shortest time of a round trip, because the first one may wait for the connection. */
async function roundTripMs(link: RedisLink): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < 3; round++) {
    const startedAt = performance.now();
    if (!(await tryOut(link, 'check-config'))) throw new Error('a fact is lost');
    times.push(performance.now() - startedAt);
  }
  return Math.min(...times);
}

function refusalText(error: unknown): string {
  const text = error instanceof Error ? error.message : '';
  // This is how Redis refuses a command inside a script.
  const isForbidden = text.includes("can't run this command");
  const code = isForbidden ? 'NOPERM' : (refusalWord(error) ?? '');
  return (
    REFUSALS[code] ??
    `refuses what the gateway needs, TIME and SET in a script${code && ` (${code})`}: run Redis 6 or later`
  );
}

/** Empty strings when Redis does not say. */
async function readInfo(link: RedisLink): Promise<{ version: string; policy: string }> {
  const info = await link.send('INFO', []).catch(() => '');
  const value = (name: string) => new RegExp(`^${name}:([\\w.-]+)`, 'm').exec(String(info))?.[1] ?? '';
  return { version: value('redis_version'), policy: value('maxmemory_policy') };
}
