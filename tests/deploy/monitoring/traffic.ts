/** Everything that people and machines ask of a gateway, well or not, so that each metric has something to count. */

import { eventually } from '../../support/eventually.ts';
import { type RequestOptions, request } from '../../support/world.ts';
import type { WatchedGateways } from './scraped-gateways.ts';

const SIGNED_IN = cookies('access', 'refresh-0');
const ORDER = { model: 'music-1', prompt: 'A calm evening', music_length_ms: 30_000 };
const LATE = 'GET /v1/library/late';

function cookies(access: string, refresh: string): string {
  return `svc_music_access=${access}; svc_music_refresh=${refresh}`;
}

function grant(code: string) {
  return { code, code_verifier: 'v'.repeat(43) };
}

let rounds = 0;

/** Makes one request of each kind, one after the other. */
export async function everythingOnce({ main, small, upstream }: WatchedGateways): Promise<void> {
  const ask = (path: string, options: RequestOptions = {}) => request(main.url + path, options);
  const read = async (path: string, options?: RequestOptions) =>
    void (await (await ask(path, options)).bytes());
  const session = (access: string, refresh: string) =>
    read('/api/auth/session', { cookie: cookies(access, refresh) });

  for (const code of ['good', 'refused', 'large']) await read('/api/auth/idp', { json: grant(code) });
  await read('/api/health');
  await read('/api/music/models', { cookie: SIGNED_IN });
  await read('/api/auth/session', { method: 'OPTIONS' });
  await read('/api/auth/session', { origin: 'http://stranger.test' });
  await read('/api/nowhere');
  for (const access of ['access', 'failing', 'late']) await session(access, 'refresh-0');
  const spent = `refresh-spent-${++rounds}`;
  await Promise.all([session('expired', spent), session('expired', spent)]);
  await session('expired', spent);
  for (const outcome of ['ended', 'failing', 'late']) await session('expired', `${outcome}-${rounds}`);

  for (const json of [ORDER, { ...ORDER, prompt: '' }])
    await read('/api/music/generate', { cookie: SIGNED_IN, json });
  for (const name of ['track', 'missing', 'moved'])
    await read(`/api/upstream/v1/library/${name}`, { cookie: SIGNED_IN });
  await (await ask('/api/upstream/v1/library/endless', { cookie: SIGNED_IN })).body?.cancel();
  const client = new AbortController();
  const late = ask('/api/upstream/v1/library/late', { cookie: SIGNED_IN, signal: client.signal });
  await upstream.arrived(LATE, rounds);
  client.abort();
  await late.catch(() => {});
  await read('/api/auth/logout', { cookie: SIGNED_IN, method: 'POST' });
  await fillSmall(small.url);
}

/** The small gateway takes one request at a time, has no identity provider, and its upstream breaks off. */
async function fillSmall(url: string): Promise<void> {
  const get = (name: string) => request(`${url}/api/upstream/v1/library/${name}`, { cookie: SIGNED_IN });
  // The gateway hears a little later than the client that the response before has ended.
  const getOnceFree = (name: string) =>
    eventually(async () => {
      const response = await get(name);
      if (response.status === 200) return response;
      await response.bytes();
      return undefined;
    }, 'a free place');
  await (await request(`${url}/api/auth/idp`, { json: grant('good') })).bytes();
  const broken = await getOnceFree('broken');
  const isWhole = await broken.bytes().then(
    () => true,
    () => false,
  );
  if (isWhole) throw new Error('a body that broke off looked complete');
  const first = await getOnceFree('endless');
  const second = await get('endless');
  await second.bytes();
  await first.body?.cancel();
  if (second.status !== 503) throw new Error(`not refused: ${second.status}`);
}
