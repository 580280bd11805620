/** To a client of HTTP/1.0 a body ends with its connection, so only a reset shows that it is not complete. */

import { expect, it } from 'bun:test';
import { RawConnection } from '../../support/raw-http.ts';
import { startRawUpstream } from '../../support/raw-upstream.ts';
import { GENERATE, PROXIED_PATH, PUBLIC, TRACK } from '../../support/routes.ts';
import { rawText } from '../../support/shared-world.ts';
import { startWorld } from '../../support/world.ts';

const ORDER = JSON.stringify(TRACK);

/** The first slice of three, or a later one. */
function slice(range: string, bytes = 1000, etag = '"a"'): string {
  const head = `ETag: ${etag}\r\nContent-Range: bytes ${range}/3000\r\nContent-Length: ${bytes}`;
  return `HTTP/1.1 206 Partial Content\r\n${head}\r\n\r\n${'a'.repeat(bytes)}`;
}

const FIRST = slice('0-999');
const BEGUN = 'HTTP/1.1 200 OK\r\nContent-Type: audio/wav\r\nContent-Length: 100000\r\n\r\nfirst piece';

const LIMITS = { TIMEOUT_STREAM_MS: '5000', TIMEOUT_SIGN_IN_MS: '5000', RELAY_SLICE_BYTES: '1000' };

/** Without slices, the upstream resets once the client has its first bytes. */
const WAYS = [
  { body: 'with a short first slice', path: PROXIED_PATH, slices: [slice('0-999', 400)] },
  { body: 'whose ETag changes', path: PUBLIC.path, slices: [FIRST, slice('1000-1999', 1000, '"b"')] },
  { body: 'with a short later slice', path: PROXIED_PATH, slices: [FIRST, slice('1000-1999', 10)] },
  { body: 'that the upstream breaks off', path: PUBLIC.path },
  { body: 'of a generation that breaks off', path: GENERATE.path },
];

it.concurrent.each(['HTTP/1.0', 'HTTP/1.1'].flatMap((version) => WAYS.map((way) => ({ version, ...way }))))(
  'a body $body never looks complete over $version',
  async ({ version, path, slices }) => {
    const responses = (slices ?? [BEGUN]).values();
    let breakOff = () => {};
    await using upstream = await startRawUpstream((socket) => {
      breakOff = () => socket.resetAndDestroy();
      socket.write(responses.next().value ?? '');
      socket.on('data', () => socket.write(responses.next().value ?? ''));
    });
    await using world = startWorld({ UPSTREAM_URL: upstream.url, ...LIMITS });
    const client = new RawConnection(world.port);
    const ordered = [`Content-Type: application/json`, `Content-Length: ${ORDER.length}`];
    await client.send(
      path === GENERATE.path
        ? rawText(`POST ${path}`, { version, lines: ordered, body: ORDER })
        : rawText(`GET ${path}`, { version, lines: slices ? ['Range: bytes=0-'] : [] }),
    );
    while (!slices && !client.received.includes('first piece')) await client.changed(1000);
    if (!slices) breakOff();
    await client.closed;
    expect([client.isBroken, client.received.includes('\r\n0\r\n\r\n')]).toEqual([true, false]);
    expect(await world.line({ brokenBody: true })).toMatchObject({ level: 'warn' });
  },
);
