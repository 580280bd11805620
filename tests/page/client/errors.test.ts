import { afterEach, describe, expect, it, setSystemTime } from 'bun:test';
import { startWorld } from '../../support/world.ts';
import {
  clientIn,
  failWith,
  fetchOf,
  openBreaking,
  openPage,
  PROVIDER,
  rejection,
  respondWith,
  shareSignedIn,
} from './page.ts';

const CREATIONS = 'GET /v1/music/creations';
const UNKNOWN = 'The gateway responded with 429.';

const failed = (message: string, status: number) => ({ name: 'GatewayRequestError', message, status });

describe('the message of an error', () => {
  const signedIn = shareSignedIn();

  it("is the gateway's own, in the language that the client has at that moment", async () => {
    await using world = startWorld();
    let language: string | undefined;
    const client = clientIn(openPage(), world, { language: () => language });
    const order = { model: 'm', prompt: 'p', music_length_ms: 3000 };
    for (const request of [client.models(), client.generate(order), client.creations()]) {
      expect(await rejection(request)).toMatchObject(failed('You are not signed in.', 401));
    }
    language = 'sw';
    expect(await rejection(client.models())).toMatchObject(failed('Hujaingia kwenye akaunti.', 401));
    language = 'en-GB';
    expect(await rejection(client.models())).toMatchObject(failed('You are not signed in.', 401));
  });

  it.each([
    ['its error', { error: { message: 'Too many tracks', code: 7 }, message: 'other' }, 'Too many tracks'],
    ['its message', { message: 'Too many tracks' }, 'Too many tracks'],
    ['its message beside an error that is a text', { error: 'limit', message: 'Too many' }, 'Too many'],
    ['its message beside a blank error', { error: { message: ' ' }, message: 'Too many' }, 'Too many'],
    ['the status when it is no text', { message: { en: 'x' } }, UNKNOWN],
    ['the status when it is a list', [{ message: 'x' }], UNKNOWN],
    ['the status when it is null', null, UNKNOWN],
  ])('of the upstream is %s', async (_, body, message) => {
    const { world, client } = signedIn();
    world.upstream.on(CREATIONS, () => Response.json(body, { status: 429, headers: { 'retry-after': '7' } }));
    const error = await rejection(client.creations());
    expect(error).toMatchObject({ ...failed(message, 429), retryAfterSeconds: 7 });
  });

  it('names the status of a body that is not JSON', async () => {
    for (const body of ['<html>Bad Gateway</html>', '']) {
      const error = await rejection(respondWith(body, { status: 502 }).models());
      expect(error).toMatchObject(failed('The gateway responded with 502.', 502));
    }
  });
});

describe('retryAfterSeconds', () => {
  afterEach(() => void setSystemTime());

  it.each([
    ['0', 0],
    ['120', 120],
    ['Fri, 20 Nov 2026 20:00:30 GMT', 30],
    ['Fri, 20 Nov 2026 19:59:00 GMT', 0],
    ['5, 5', undefined],
    ['-5', undefined],
    ['1e3', undefined],
    ['', undefined],
    ['Fri, 45 Nov 2026 20:00:30 GMT', undefined],
    [undefined, undefined],
  ])('of %p is %p', async (retryAfter, seconds) => {
    setSystemTime(new Date('2026-11-20T20:00:00.000Z'));
    const headers: HeadersInit = retryAfter === undefined ? {} : { 'retry-after': retryAfter };
    const error = await rejection(respondWith(null, { status: 503, headers }).models());
    expect(error).toHaveProperty('retryAfterSeconds', seconds);
  });
});

describe('challenge', () => {
  const signedIn = shareSignedIn();
  const withChallenge = (header: string) =>
    respondWith(null, { status: 401, headers: { 'www-authenticate': header } });
  const ERROR = 'insufficient_user_authentication';

  it.each([
    [`Bearer error="${ERROR}"`, { error: ERROR }],
    [`Bearer error="${ERROR}", max_age="0", realm="r"`, { error: ERROR, maxAgeSeconds: 0 }],
    [`Bearer error="${ERROR}", acr_values="a b"`, { error: ERROR, acrValues: 'a b' }],
    [
      `Bearer error="${ERROR}", acr_values="a", max_age="9", scope="s", Bearer error="e"`,
      { error: ERROR, acrValues: 'a', maxAgeSeconds: 9 },
    ],
    [`Bearer error="${ERROR}", max_age="soon"`, { error: ERROR }],
  ])('of %s is what another sign-in has to fulfil, and the session goes on', async (header, challenge) => {
    const error = await rejection(withChallenge(header).session());
    expect(error).toMatchObject({ status: 401, sessionHasEnded: false });
    expect(error).toHaveProperty('challenge', challenge);
  });

  it('is absent without an error, and the session has ended', async () => {
    for (const header of ['', 'Bearer', 'Bearer realm="r"', 'Basic realm="r"']) {
      const error = await rejection(withChallenge(header).models());
      expect(error).toMatchObject({ status: 401, sessionHasEnded: true });
      expect(error).toHaveProperty('challenge', undefined);
    }
  });

  it('comes through the gateway from the upstream, which is asked once, and leads to the sign-in', async () => {
    const { world, client } = signedIn();
    const header = `Basic realm="r", Bearer realm="r", error="${ERROR}", max_age=300, acr_values="mfa"`;
    world.upstream.on('POST /v1/music', () => {
      return new Response('', { status: 401, headers: { 'www-authenticate': header } });
    });
    const before = world.upstream.calls.length;
    const error = await rejection(client.generate({ model: 'm', prompt: 'p', music_length_ms: 3000 }));
    expect(world.upstream.calls.slice(before)).toEqual(['POST /v1/music']);
    const { challenge } = Object(error);
    expect(challenge).toEqual({ error: ERROR, acrValues: 'mfa', maxAgeSeconds: 300 });
    const { searchParams } = await client.beginSignIn({ ...PROVIDER, ...challenge });
    expect([searchParams.get('acr_values'), searchParams.get('max_age')]).toEqual(['mfa', '300']);
  });
});

describe('requestId', () => {
  it("is the one in the gateway's log, also of a response that is not JSON; without a response there is none", async () => {
    await using world = startWorld();
    const error = await rejection(clientIn(openPage(), world).models());
    const { requestId } = world.lines.find(({ method }) => method === 'GET') ?? {};
    expect(requestId).toBeString();
    expect(error).toHaveProperty('requestId', requestId);
    const broken = respondWith('{', { headers: { 'x-request-id': 'r-1' } });
    expect(await rejection(broken.models())).toHaveProperty('requestId', 'r-1');
    expect(await rejection(failWith('lost').models())).toHaveProperty('requestId', undefined);
  });
});

describe('a response', () => {
  it('that is not JSON is an error with its status, which quotes nothing of it', async () => {
    const client = respondWith('<html>secret</html>');
    const requests = [client.models(), client.upstreamData('/v1/me'), client.setVisibility('1', true)];
    for (const [index, request] of requests.entries()) {
      const error = await rejection(request);
      expect(error).toMatchObject({ ...failed('The response is not JSON.', 200), retryIsSafe: index < 2 });
      expect(error).toHaveProperty('cause', undefined);
    }
  });

  it('that breaks off is an error without a status', async () => {
    await using opened = await openBreaking('Content-Type: application/json\r\n\r\n2\r\n[1\r\n');
    let responses = 0;
    const client = clientIn(opened.page, opened.world, {
      async fetch(url, init) {
        const response = await fetchOf(opened.page)(url, init);
        responses++;
        opened.breakOff();
        return response;
      },
    });
    const error = await rejection(client.creations());
    expect(responses).toBe(1);
    expect(error).toMatchObject({ ...failed('The connection to the gateway failed.', 0), retryIsSafe: true });
    expect(error).toHaveProperty('cause.message');
  });
});
