/** To a client of HTTP/1.0 a body ends with its connection, so only a reset shows that it is not complete. */

import { expect, it } from 'bun:test';
import { createGateway } from '../../../src/gateway/gateway.ts';
import { RawConnection } from '../../support/raw-http.ts';
import { startRawUpstream } from '../../support/raw-upstream.ts';
import { recordLog } from '../../support/recorded-log.ts';
import { GENERATE, PROXIED_PATH, PUBLIC, TRACK } from '../../support/routes.ts';
import { ORIGIN, SIGNED_IN, testSettings } from '../../support/world.ts';

const IN_SLICES = 'Range: bytes=0-\r\n';
const ORDER = JSON.stringify(TRACK);

/** The first slice of three, or a later one. */
function slice(range: string, bytes = 1000, etag = '"a"'): string {
  const head = `ETag: ${etag}\r\nContent-Range: bytes ${range}/3000\r\nContent-Length: ${bytes}`;
  return `HTTP/1.1 206 Partial Content\r\n${head}\r\n\r\n${'a'.repeat(bytes)}`;
}

const FIRST = slice('0-999');
const BEGUN = 'HTTP/1.1 200 OK\r\nContent-Type: audio/wav\r\nContent-Length: 100000\r\n\r\nfirst piece';

const LIMITS = { TIMEOUT_STREAM_MS: '5000', TIMEOUT_SIGN_IN_MS: '5000', RELAY_SLICE_BYTES: '1000' };

/** `breaksOff`: the upstream resets once the client has its first bytes. */
const WAYS = [
  { body: 'with a short first slice', path: PROXIED_PATH, lines: IN_SLICES, sent: [slice('0-999', 400)] },
  {
    body: 'whose ETag changes',
    path: PUBLIC.path,
    lines: IN_SLICES,
    sent: [FIRST, slice('1000-1999', 1000, '"b"')],
  },
  {
    body: 'with a short later slice',
    path: PROXIED_PATH,
    lines: IN_SLICES,
    sent: [FIRST, slice('1000-1999', 10)],
  },
  { body: 'that the upstream breaks off', path: PUBLIC.path, lines: '', sent: [BEGUN], breaksOff: true },
  { body: 'of a generation that breaks off', path: GENERATE.path, lines: '', sent: [BEGUN], breaksOff: true },
];

it.concurrent.each(['HTTP/1.0', 'HTTP/1.1'].flatMap((version) => WAYS.map((way) => ({ version, ...way }))))(
  'a body $body never looks complete over $version',
  async ({ version, path, lines, sent, breaksOff }) => {
    const responses = sent.values();
    let breakOff = () => {};
    await using upstream = await startRawUpstream((socket) => {
      breakOff = () => socket.resetAndDestroy();
      socket.write(responses.next().value ?? '');
      socket.on('data', () => socket.write(responses.next().value ?? ''));
    });
    const { logger, line } = recordLog();
    const addresses = { UPSTREAM_URL: upstream.url, IDP_URL: upstream.url };
    const settings = testSettings({ ...addresses, ...LIMITS });
    const gateway = createGateway({ settings, logger });
    gateway.listen({ port: 0, hostname: '127.0.0.1' });
    const port = gateway.server?.port ?? 0;
    const client = new RawConnection(port);
    const head = `${version}\r\nHost: x\r\nOrigin: ${ORIGIN}\r\nCookie: ${SIGNED_IN}\r\nConnection: close\r\n${lines}`;
    const order = `Content-Type: application/json\r\nContent-Length: ${ORDER.length}\r\n\r\n${ORDER}`;
    await client.send(path === GENERATE.path ? `POST ${path} ${head}${order}` : `GET ${path} ${head}\r\n`);
    while (breaksOff && !client.received.includes('first piece')) await client.changed(1000);
    if (breaksOff) breakOff();
    await client.closed;
    expect([client.isBroken, client.received.includes('\r\n0\r\n\r\n')]).toEqual([true, false]);
    expect(await line({ brokenBody: true })).toMatchObject({ level: 'warn' });
    await gateway.stop(true);
  },
);
