/** Everything that people and machines ask of a gateway, well or not, so that each metric has something to count. */

import { type RequestOptions, request } from '../support/world.ts';
import type { WatchedGateways } from './scraped-gateways.ts';

export const SIGNED_IN = cookies('access', 'refresh-0');
export const GENERATION = { model: 'music-1', prompt: 'A calm evening', music_length_ms: 30_000 };

export function cookies(access: string, refresh: string): string {
  return `svc_music_access=${access}; svc_music_refresh=${refresh}`;
}

/** For a sign-in. */
export function grant(code: string) {
  return { code, code_verifier: 'v'.repeat(43) };
}

export type Ask = (path: string, options?: RequestOptions) => Promise<Response>;

export function asking(gatewayUrl: string): Ask {
  return (path, options = {}) => request(gatewayUrl + path, options);
}

let sessions = 0;

/** One of everything, one kind after the other. */
export async function everythingOnce({ main, small, upstream }: WatchedGateways): Promise<void> {
  const ask = asking(main.url);
  const whole = async (...request: Parameters<Ask>) => void (await (await ask(...request)).bytes());
  const session = (access: string, refresh: string) =>
    whole('/api/auth/session', { cookie: cookies(access, refresh) });
  const signIn = (code: string) => whole('/api/auth/idp', { json: grant(code) });

  for (const code of ['good', 'refused', 'large']) await signIn(code);
  await whole('/api/health');
  await whole('/api/music/models', { cookie: SIGNED_IN });
  await whole('/api/auth/session', { method: 'OPTIONS' });
  await whole('/api/auth/session', { origin: 'http://stranger.test' });
  await whole('/api/nowhere');
  for (const access of ['access', 'failing', 'late']) await session(access, 'refresh-0');
  const spent = `refresh-spent-${++sessions}`;
  await Promise.all([session('expired', spent), session('expired', spent)]);
  await session('expired', spent);
  await session('expired', `ended-${sessions}`);
  await session('expired', `late-${sessions}`);

  await whole('/api/music/generate', { cookie: SIGNED_IN, json: GENERATION });
  await whole('/api/music/generate', { cookie: SIGNED_IN, json: { ...GENERATION, prompt: '' } });
  for (const name of ['track', 'missing', 'moved']) {
    await whole(`/api/upstream/v1/library/${name}`, { cookie: SIGNED_IN });
  }
  await (await ask('/api/upstream/v1/library/endless', { cookie: SIGNED_IN })).body?.cancel();
  await leaveWhileWaiting(ask, upstream);
  await whole('/api/auth/logout', { cookie: SIGNED_IN, method: 'POST' });

  const askSmall = asking(small.url);
  await (await askSmall('/api/auth/idp', { json: grant('good') })).bytes();
  await expectBroken(await askUntilTaken(askSmall, '/api/upstream/v1/library/broken'));
  await askForTooMuch(askSmall);
}

/** A gateway hears a little later than the client that an answer has ended. */
async function askUntilTaken(ask: Ask, path: string): Promise<Response> {
  for (;;) {
    const answer = await ask(path, { cookie: SIGNED_IN });
    if (answer.status === 200) return answer;
    await answer.bytes();
  }
}

async function expectBroken(answer: Response): Promise<void> {
  const isWhole = await answer.bytes().then(
    () => true,
    () => false,
  );
  if (isWhole) throw new Error('a body that broke off looked whole');
}

const LATE = 'GET /v1/library/late';

async function leaveWhileWaiting(ask: Ask, upstream: WatchedGateways['upstream']): Promise<void> {
  const client = new AbortController();
  const times = upstream.calls.filter((call) => call === LATE).length + 1;
  const answer = ask('/api/upstream/v1/library/late', { cookie: SIGNED_IN, signal: client.signal });
  await upstream.arrived(LATE, times);
  client.abort();
  await answer.catch(() => {});
}

/** Nobody reads the one that it may have under way; the next is refused. */
async function askForTooMuch(ask: Ask): Promise<void> {
  const first = await askUntilTaken(ask, '/api/upstream/v1/library/endless');
  const second = await ask('/api/upstream/v1/library/endless', { cookie: SIGNED_IN });
  await second.bytes();
  await first.body?.cancel();
  if (second.status !== 503) throw new Error(`not refused: ${second.status}`);
}
