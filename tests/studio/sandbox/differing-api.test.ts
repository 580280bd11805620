import { expect, it } from 'bun:test';
import { createGatewayClient, type GatewayClient } from '../../../src/client/gateway-client.ts';
import { CookieJar } from '../../../src/demo/tour/cookie-jar.ts';
import { ORDER } from '../../support/sandbox-account.ts';
import type { Received } from '../../support/scripted-upstream.ts';
import { accept, GRANT, ME, pair, REFRESH, reply, scriptSignIn } from '../../support/session-calls.ts';
import { ORIGIN, startWorld, type World } from '../../support/world.ts';

const MODELS = 'GET /v1/models';
const MUSIC = 'POST /v1/music';
const CONTENT = 'GET /v1/music/creations/7/content';
/** 12 slices. */
const TRACK = Buffer.alloc(3 * 1024 * 1024, 'track');
const CDN = 'https://cdn.test/7.mp3?signature=a';
const RATE_LIMIT = 5;

/** Responds with the range, as an API with this ETag does. */
const ranges =
  (etag: string) =>
  ({ headers }: Received) => {
    const [, first = 0, last] = /(\d+)-(\d*)/.exec(headers.get('range') ?? '') ?? [];
    const part = TRACK.subarray(Number(first), Math.min(Number(last || TRACK.length), TRACK.length - 1) + 1);
    const range = `bytes ${first}-${Number(first) + part.length - 1}/${TRACK.length}`;
    return new Response(part, { status: 206, headers: { 'content-range': range, etag } });
  };

/** Lets five calls pass; within a second the others are refused. */
function limited(respond: (received: Received) => Response) {
  let calls = 0;
  const refuse = () =>
    Response.json({ message: 'slow down' }, { status: 429, headers: { 'retry-after': '1' } });
  return (received: Received) => (calls++ < RATE_LIMIT ? respond(received) : refuse());
}

interface Page {
  readonly client: GatewayClient;
  readonly world: World;
  /** What an `audio` element gets at its first request: without redirects, which are the browser's to follow. */
  listen(): Promise<readonly [status: number, audio: string | null]>;
  /** How long the access cookie lasts. */
  cookieSeconds(): number;
}

interface Difference {
  readonly tokens?: object;
  readonly script?: readonly [call: string, (received: Received) => Response | Promise<Response>][];
  readonly does: (page: Page) => Promise<unknown>;
  readonly sees: unknown;
  readonly calls?: readonly string[];
}

const failure = (work: Promise<unknown>) => work.catch((error: unknown) => error);
const name = async ({ client }: Page) => (await client.session()).profile?.name;

const DIFFERENCES: Record<string, Difference> = {
  '403 for an expired token is no reason to refresh': {
    script: [[MODELS, reply(403, { message: 'expired' })]],
    does: ({ client }) => failure(client.models()),
    sees: { status: 403, message: 'expired', sessionHasEnded: false },
    calls: [MODELS],
  },
  'without expires_in the access cookie lasts 900 s': {
    does: async (page) => page.cookieSeconds(),
    sees: 900,
  },
  'expires_in as a text counts': {
    tokens: { ...pair(1), expires_in: '60' },
    does: async (page) => page.cookieSeconds(),
    sees: 60,
  },
  'what is in a wrapper is found, the profile too': {
    tokens: { data: pair(1) },
    script: [[ME, accept('access-1', reply(200, { data: { name: 'Ada' } }))]],
    does: name,
    sees: 'Ada',
    calls: [ME],
  },
  'the same refresh token again keeps the user signed in, and is no theft': {
    script: [
      [ME, accept('access-2', reply(200, { name: 'Ada' }))],
      [REFRESH, reply(200, { ...pair(1), access_token: 'access-2' })],
    ],
    async does(page) {
      await name(page);
      page.world.upstream
        .on(ME, accept('access-3', reply(200, { name: 'Ada' })))
        .on(REFRESH, reply(200, { ...pair(1), access_token: 'access-3' }));
      return [await name(page), page.world.lines.some((line) => 'refreshTokenReused' in line)];
    },
    sees: ['Ada', false],
    calls: [ME, REFRESH, ME, ME, REFRESH, ME],
  },
  'a job is not taken for a track': {
    script: [[MUSIC, reply(202, { job_id: '7' })]],
    does: ({ client }) => failure(client.generate(ORDER)),
    sees: { code: 'not_audio', beginning: '{"job_id":"7"}' },
    calls: [MUSIC],
  },
  'audio by 302 is the browser’s to follow': {
    script: [[CONTENT, () => Response.redirect(CDN, 302)]],
    does: (page) => page.listen(),
    sees: [302, CDN],
    calls: [CONTENT],
  },
  'without ranges the track arrives whole': {
    script: [[CONTENT, () => new Response(TRACK)]],
    does: (page) => page.listen(),
    sees: [200, 'whole'],
    calls: [CONTENT],
  },
  'a weak ETag costs one more request': {
    script: [[CONTENT, ranges('W/"a"')]],
    does: (page) => page.listen(),
    sees: [206, 'whole'],
    calls: [CONTENT, CONTENT],
  },
  'a rate limit breaks off a track in slices, and reaches the page otherwise': {
    script: [
      [CONTENT, limited(ranges('"a"'))],
      [MODELS, limited(reply(200, []))],
    ],
    async does(page) {
      const heard = await failure(page.listen());
      const { cause } = await page.world.line({ brokenBody: true });
      for (let call = 0; call < RATE_LIMIT; call++) await page.client.models();
      return [heard instanceof Error, cause, await failure(page.client.models())];
    },
    sees: [true, 'SliceError status 429', { status: 429, message: 'slow down', retryAfterSeconds: 1 }],
    calls: [...Array(RATE_LIMIT + 1).fill(CONTENT), ...Array(RATE_LIMIT + 1).fill(MODELS)],
  },
};

it.each(Object.entries(DIFFERENCES))(
  'an API that differs: %s',
  async (_, { tokens, script = [], ...row }) => {
    await using world = startWorld();
    scriptSignIn(world, tokens);
    for (const [call, respond] of script) world.upstream.on(call, respond);
    const jar = new CookieJar();
    const send = (url: string, { headers, ...init }: RequestInit = {}) =>
      jar.fetch(new URL(url), {
        ...init,
        headers: { ...Object.fromEntries(new Headers(headers)), origin: ORIGIN },
      });
    const client = createGatewayClient({ baseUrl: world.url, fetch: send });
    const listen = async () => {
      const response = await send(client.contentUrl('7'), { headers: { range: 'bytes=0-' } });
      const isWhole = TRACK.equals(await response.bytes());
      return [response.status, isWhole ? 'whole' : response.headers.get('location')] as const;
    };
    const cookieSeconds = () => Math.ceil(jar.secondsLeft(new URL(world.url), 'svc_music_access'));
    const headers = { 'content-type': 'application/json' };
    await send(`${world.url}/api/auth/idp`, { method: 'POST', headers, body: JSON.stringify(GRANT) });
    const seen = await row.does({ client, world, listen, cookieSeconds });
    expect({ seen, calls: world.upstream.calls.slice(2) }).toMatchObject({
      seen: row.sees,
      calls: row.calls ?? [],
    });
  },
);
