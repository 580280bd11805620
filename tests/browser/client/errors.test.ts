import { afterEach, describe, expect, it, setSystemTime } from 'bun:test';
import { createGatewayClient, type GatewayClient } from '../../../src/client/gateway-client.ts';
import { startRawUpstream } from '../../support/raw-upstream.ts';
import { startWorld } from '../../support/world.ts';
import { clientIn, fetchOf, openPage, openSignedIn, rejection } from './page.ts';

const ORDER = { model: 'm', prompt: 'p', music_length_ms: 3000 };

/** A client whose gateway always gives this answer. */
function answeredWith(body: BodyInit | null, init: ResponseInit): GatewayClient {
  return createGatewayClient({ baseUrl: 'http://gateway.test', fetch: async () => new Response(body, init) });
}

const failed = (message: string, status: number) => ({ name: 'GatewayRequestError', message, status });

describe('the message of an error', () => {
  it("is the gateway's own", async () => {
    await using world = startWorld();
    const client = clientIn(openPage(), world);
    for (const request of [client.models(), client.generate(ORDER), client.creations()]) {
      expect(await rejection(request)).toMatchObject(failed('You are not signed in.', 401));
    }
  });

  it('is in the language that the client is in at that moment', async () => {
    await using world = startWorld();
    let language: string | undefined = 'sw';
    const client = clientIn(openPage(), world, { language: () => language });
    const swahili = await rejection(client.models());
    expect(swahili).toMatchObject(failed('Hujaingia kwenye akaunti.', 401));
    language = 'en-GB';
    expect(await rejection(client.models())).toMatchObject(failed('You are not signed in.', 401));
    language = undefined;
    expect(await rejection(client.models())).toMatchObject(failed('You are not signed in.', 401));
  });

  it.each([
    ['its error', { error: { message: 'Too many tracks', code: 7 }, message: 'other' }, 'Too many tracks'],
    ['its message', { message: 'Too many tracks' }, 'Too many tracks'],
    ['its message beside an error that is a text', { error: 'limit', message: 'Too many' }, 'Too many'],
    ['its message beside a blank error', { error: { message: ' ' }, message: 'Too many' }, 'Too many'],
    ['the status when it has none', { detail: 'x' }, 'The gateway responded with 429.'],
    ['the status when it is no text', { message: { en: 'x' } }, 'The gateway responded with 429.'],
    ['the status when it is blank', { message: '' }, 'The gateway responded with 429.'],
    ['the status when it is a list', [{ message: 'x' }], 'The gateway responded with 429.'],
    ['the status when it is null', null, 'The gateway responded with 429.'],
  ])('of the upstream is %s', async (_, body, message) => {
    await using world = startWorld();
    const { client } = await openSignedIn(world);
    world.upstream.on('GET /v1/music/creations', () => Response.json(body, { status: 429 }));
    expect(await rejection(client.creations())).toMatchObject(failed(message, 429));
  });

  it.each(['<html>Bad Gateway</html>', '', '{"message":"cut o'])(
    'names the status when the answer is %p',
    async (body) => {
      expect(await rejection(answeredWith(body, { status: 502 }).models())).toMatchObject(
        failed('The gateway responded with 502.', 502),
      );
    },
  );
});

describe('retryAfterSeconds', () => {
  afterEach(() => void setSystemTime());

  it.each([
    ['120', 120],
    ['0', 0],
    ['Fri, 20 Nov 2026 20:00:30 GMT', 30],
    ['Fri, 20 Nov 2026 19:59:00 GMT', 0],
    ['5, 5', undefined],
    ['-5', undefined],
    ['1e3', undefined],
    ['', undefined],
    ['soon', undefined],
    ['Fri, 45 Nov 2026 20:00:30 GMT', undefined],
  ])('of %p is %p', async (retryAfter, seconds) => {
    setSystemTime(new Date('2026-11-20T20:00:00.000Z'));
    const client = answeredWith(null, { status: 503, headers: { 'retry-after': retryAfter } });
    expect(await rejection(client.models())).toHaveProperty('retryAfterSeconds', seconds);
  });

  it('is undefined without the header', async () => {
    const error = await rejection(answeredWith(null, { status: 503 }).models());
    expect(error).toHaveProperty('retryAfterSeconds', undefined);
  });

  it('comes from the upstream too', async () => {
    await using world = startWorld();
    const { client } = await openSignedIn(world);
    world.upstream.on(
      'GET /v1/music/creations',
      () => new Response('', { status: 429, headers: { 'retry-after': '7' } }),
    );
    expect(await rejection(client.creations())).toMatchObject({ status: 429, retryAfterSeconds: 7 });
  });
});

describe('requestId', () => {
  it("is the one in the gateway's log", async () => {
    await using world = startWorld();
    const error = await rejection(clientIn(openPage(), world).models());
    const { requestId } = world.lines.find(({ method }) => method === 'GET') ?? {};
    expect(requestId).toBeString();
    expect(error).toHaveProperty('requestId', requestId);
  });

  it('is there when the answer is not JSON, and not when there is none', async () => {
    const broken = answeredWith('{', { status: 200, headers: { 'x-request-id': 'r-1' } });
    expect(await rejection(broken.models())).toHaveProperty('requestId', 'r-1');
    const lost = createGatewayClient({
      baseUrl: 'http://gateway.test',
      fetch: () => Promise.reject(new TypeError('gone')),
    });
    expect(await rejection(lost.models())).toHaveProperty('requestId', undefined);
  });
});

describe('an answer that is not whole or not JSON', () => {
  it('is an error with the status when it is not JSON, and quotes nothing of it', async () => {
    const client = answeredWith('<html>secret</html>', { status: 200 });
    for (const request of [client.models(), client.upstreamData('/v1/me'), client.setVisibility('1', true)]) {
      const error = await rejection(request);
      expect(error).toMatchObject(failed('The response is not JSON.', 200));
      expect(error).toHaveProperty('cause', undefined);
    }
    expect(await rejection(client.models())).toMatchObject({ retryIsSafe: true });
    expect(await rejection(client.setVisibility('1', true))).toMatchObject({ retryIsSafe: false });
  });

  it('is an error without a status when it breaks off', async () => {
    const sockets: { destroy(): void }[] = [];
    await using upstream = await startRawUpstream((socket, request) => {
      const json = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n';
      if (/^POST/.test(request)) {
        const pair = '{"access_token":"access-1","refresh_token":"refresh-1","expires_in":60}';
        socket.end(`${json}Content-Length: ${pair.length}\r\nConnection: close\r\n\r\n${pair}`);
      } else {
        sockets.push(socket);
        socket.write(`${json}Transfer-Encoding: chunked\r\n\r\n2\r\n[1\r\n`);
      }
    });
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    const { page } = await openSignedIn(world);
    let answers = 0;
    const client = clientIn(page, world, {
      async fetch(url, init) {
        const answer = await fetchOf(page)(url, init);
        answers++;
        for (const socket of sockets) socket.destroy();
        return answer;
      },
    });
    const error = await rejection(client.creations());
    expect(answers).toBe(1);
    expect(error).toMatchObject({ ...failed('The connection to the gateway failed.', 0), retryIsSafe: true });
    expect(error).toHaveProperty('cause.message');
  });
});
