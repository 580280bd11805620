import { afterAll, beforeAll, describe, expect, it } from 'bun:test';
import { once } from 'node:events';
import http from 'node:http';
import { text } from 'node:stream/consumers';
import { type MessageKey, messages } from '../../../src/gateway/http/messages.ts';
import { freePorts } from '../../support/free-ports.ts';
import { describeWith, LINUX, program } from '../../support/requirements.ts';
import { ORIGIN } from '../../support/world.ts';
import { startTlsProxy, TLS_PROXIES, type TlsProxy } from './tls-proxies.ts';

const UPLOAD = '/api/upstream/v1/files';
const STATUSES = [408, 413, 429, 502, 503, 504];
const TEXT = 'the gateway has said this';
const NEVER = new Promise<never>(() => {});

/** What a proxy refuses. */
interface Refusal {
  readonly status: number;
  readonly what: string;
  readonly path: string;
  readonly key: MessageKey;
  readonly retryAfter?: string;
  /** Of the request, and how long it says that it is. */
  readonly body?: () => AsyncGenerator<Uint8Array>;
  readonly length?: number;
  /** The request before it is served. */
  readonly again?: boolean;
}

const TOO_LARGE = { status: 413, path: UPLOAD, key: 'uploadTooLarge', body: twoMegabytes } as const;
const TOO_MANY: Refusal = {
  ...{ status: 429, what: 'a request too many', path: '/api/health', key: 'overloaded' },
  ...{ retryAfter: '10', again: true },
};

/** Smaller limits, and what exceeds them. HAProxy leaves the size of bodies to the gateway; nginx says nothing after its wait for one. */
const LIMITS: Readonly<Record<string, { changes: Record<string, string>; refusals: readonly Refusal[] }>> = {
  nginx: {
    changes: { 'read_timeout 300s': 'read_timeout 1s', ' 201m': ' 1m', ' burst=500 nodelay': '' },
    refusals: [
      { what: 'an upload that declares its length', length: 2_000_000, ...TOO_LARGE },
      { what: 'an upload in chunks', ...TOO_LARGE },
      { what: 'another long body', ...TOO_LARGE, path: '/api/music/generate', length: 5_000_000 },
      TOO_MANY,
    ],
  },
  haproxy: {
    changes: { 'server 300s': 'server 1s', 'body time 10s': 'body time 1s', 'SECONDS-1000': 'SECONDS-1' },
    refusals: [
      { status: 408, what: 'a body that does not come', path: UPLOAD, key: 'bodyTooSlow', body: nothing },
      TOO_MANY,
    ],
  },
};
const FAILURES: readonly Refusal[] = [
  { status: 502, what: 'a broken response', path: '/api/broken', key: 'upstreamUnreachable' },
  { status: 504, what: 'none in time', path: '/api/silent', key: 'upstreamTimeout' },
];

async function* twoMegabytes() {
  for (let sent = 0; sent < 20; sent++) yield new Uint8Array(100_000);
}

async function* nothing(): AsyncGenerator<Uint8Array> {
  yield NEVER;
}

for (const { program: name, prepare } of TLS_PROXIES) {
  const { changes, refusals } = LIMITS[name] ?? { changes: {}, refusals: [] };
  describeWith([program(name), LINUX], `${name}, as configured in deploy,`, () => {
    const stack = new AsyncDisposableStack();
    let port: number;
    let proxy: TlsProxy;
    let clients = 0;
    const gateway = http.createServer(({ url = '', socket }, response) => {
      const [, status] = /^\/api\/own\/(\d+)$/.exec(url) ?? [];
      if (status) response.writeHead(Number(status), { 'access-control-allow-origin': ORIGIN }).end(TEXT);
      else if (url === '/api/health') response.end();
      else if (url === '/api/broken') socket.end('HTTP/1.1 200 OK\r\n\0\r\n\r\n');
    });
    const stop = () => {
      gateway.close();
      gateway.closeAllConnections();
    };
    beforeAll(async () => {
      port = await freePorts(1);
      await once(gateway.listen(port, '127.0.0.1'), 'listening');
      stack.defer(stop);
      proxy = stack.use(await startTlsProxy(prepare, port, changes));
    });
    afterAll(() => stack.disposeAsync());

    /** From an address of its own. */
    const send = async (
      method: string,
      { path, length, body, again }: Pick<Refusal, 'path' | 'length' | 'body' | 'again'>,
      origin = ORIGIN,
      to = proxy,
    ) => {
      using client = to.openClient(`127.0.1.${++clients}`);
      const headers = { origin, ...(length && { 'content-length': String(length) }) };
      const request = () => client.request(method, path, headers, body && { body: body() });
      if (again) await request();
      return await request();
    };
    const expectReadable = async (method: string, expected: Refusal, to = proxy) => {
      const { status, headers, body } = await send(method, expected, ORIGIN, to);
      const envelope = { error: { message: messages.en[expected.key] } };
      expect([status, JSON.parse(body)]).toEqual([expected.status, envelope]);
      expect(headers).toMatchObject({
        'access-control-allow-origin': ORIGIN,
        'access-control-allow-credentials': 'true',
        'access-control-expose-headers': 'Retry-After',
        'cache-control': 'no-store',
        'content-type': 'application/json',
        'strict-transport-security': 'max-age=31536000',
        vary: 'Origin',
      });
      expect(headers?.['retry-after']).toBe(expected.retryAfter);
      const strange = await send(method, expected, 'https://strange.test', to);
      expect([strange.status, strange.body]).toEqual([status, body]);
      for (const header of ['access-control-allow-origin', 'access-control-allow-credentials'])
        expect(strange.headers).not.toHaveProperty(header);
    };

    it.each(refusals)('lets a page of an allowed origin read its own $status to $what', (refusal) =>
      expectReadable('POST', refusal),
    );

    // HAProxy serves the two in different ways.
    describe.each(['GET', 'POST'])('lets it read, after a %s, its own', (method) => {
      it.each(FAILURES)('$status to $what', (failure) => expectReadable(method, failure));
    });

    it.each([
      ['two of them', `${ORIGIN}\r\nOrigin: https://strange.test`],
      ['one that is followed by a zero', `${ORIGIN}\0.strange.test`],
    ])('names no origin but an allowed one, when the request has %s', async (_, origin) => {
      const head = `PURGE / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nOrigin: ${origin}\r\n\r\n`;
      const socket = proxy.send(`127.0.1.${++clients}`, head);
      const received = await text(socket);
      expect(received).toStartWith('HTTP/1.1 40');
      expect(received).not.toContain('strange');
    });

    it.each(STATUSES)("passes the gateway's own %i unchanged", async (status) => {
      for (const method of ['GET', 'POST']) {
        const response = await send(method, { path: `/api/own/${status}` });
        const headers = { 'access-control-allow-origin': ORIGIN };
        expect(response).toMatchObject({ status, body: TEXT, headers });
        for (const header of ['cache-control', 'vary', 'retry-after', 'access-control-allow-credentials'])
          expect(response.headers).not.toHaveProperty(header);
      }
    });

    if (name === 'nginx') {
      it("lets it read nginx's own 503, where a limit has no status of its own", async () => {
        const defaults = { ...changes, '  limit_req_status 429;\n': '' };
        await using other = await startTlsProxy(prepare, port, defaults);
        await expectReadable('POST', { ...TOO_MANY, status: 503, key: 'upstreamUnreachable' }, other);
      });
    }

    it('lets it read that no gateway listens', async () => {
      stop();
      const unreachable = { what: '', path: '/api/health', key: 'upstreamUnreachable' } as const;
      const says = name === 'nginx' ? { status: 502 } : { status: 503, retryAfter: '10' };
      for (const method of ['GET', 'POST']) await expectReadable(method, { ...unreachable, ...says });
    });
  });
}
