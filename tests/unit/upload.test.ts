import { beforeEach, expect, it, jest } from 'bun:test';
import { LADDER } from '../../src/gateway/admission/ladder.ts';
import { Ledger } from '../../src/gateway/admission/ledger.ts';
import { RequestBodies } from '../../src/gateway/admission/request-bodies.ts';
import { SessionLimit } from '../../src/gateway/admission/session-limit.ts';
import { readBodyOrUpload } from '../../src/gateway/exchange/request-body.ts';
import { Upload } from '../../src/gateway/exchange/upload.ts';
import { Deadline } from '../../src/gateway/upstream/deadline.ts';
import { pass } from '../support/passing-time.ts';

beforeEach(() => void jest.useFakeTimers());

const KiB = 1024;
const MiB = 1024 * KiB;
const LENGTH = 100 * MiB;

/** What the upstream has after the end of the body. */
const DEADLINE_MS = 1000;

/** An upload whose client sends, and whose upstream reads, as the test says. */
async function uploading() {
  const perSession = new SessionLimit({ maxInFlightPerSession: 0, maxGenerationsPerSession: 0 });
  const bodies = new RequestBodies(
    'relayed_body',
    { ledger: new Ledger(64 * MiB), perSession },
    LADDER.behind,
  );
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  const headers = { 'content-length': `${LENGTH}`, 'content-type': 'audio/wav' };
  const request = new Request('http://gateway.test', { method: 'POST', headers, body: readable });
  const upload = await readBodyOrUpload(request, bodies, undefined, LENGTH);
  if (!(upload instanceof Upload)) throw new Error('it is read whole');
  const deadline = new Deadline(DEADLINE_MS, undefined);
  const seen = { received: 0, ended: false, status: undefined as number | undefined };
  const reader = upload.open(deadline.ofUpload(DEADLINE_MS)).getReader();
  const read = async () => {
    const { value } = await reader.read();
    seen.received += value?.byteLength ?? 0;
    return value !== undefined;
  };
  return {
    upload,
    bodies,
    seen,
    isLate: () => deadline.signal.reason?.name === 'TimeoutError',
    send: (bytes: number) => void writer.write(new Uint8Array(bytes)).catch(() => {}),
    end: () => void writer.close().catch(() => {}),
    read,
    /** The upstream takes whatever comes. */
    async readAll() {
      try {
        while (await read());
        seen.ended = true;
      } catch (error) {
        seen.status = error instanceof Error && 'status' in error ? Number(error.status) : 0;
      }
    },
  };
}

// What client and upstream get then: integration/relay/uploads.test.ts.
it.each([
  ['nothing comes for 25 s', 0, 0, 25],
  ['less than 16 KiB a second come', 0, 4 * KiB, 33],
  ['a fast start is followed by nothing', 10 * MiB, 0, 25],
])('an upload of which %s ends with 408', async (_, first, everySecond, seconds) => {
  const { seen, isLate, send, readAll, upload, bodies } = await uploading();
  if (first) send(first);
  void readAll();
  while (seen.received < first) await pass(0);
  for (let second = 0; second < seconds; second++) {
    expect(seen.status).toBeUndefined();
    await pass(1000);
    if (everySecond) send(everySecond);
  }
  await pass(0);
  expect([seen.status, isLate()]).toEqual([408, false]);
  upload[Symbol.dispose]();
  expect([bodies.usedBytes, jest.getTimerCount()]).toEqual([0, 0]);
});

it('an upload at 16 KiB a second goes on for as long as it takes, and then the upstream has its time', async () => {
  const { seen, isLate, send, end, readAll } = await uploading();
  void readAll();
  for (let second = 0; second < 300; second++) {
    send(16 * KiB);
    await pass(1000);
  }
  expect([seen, isLate()]).toEqual([{ received: 300 * 16 * KiB, status: undefined, ended: false }, false]);
  end();
  await pass(DEADLINE_MS - 1);
  expect([seen.ended, isLate()]).toEqual([true, false]);
  await pass(1);
  expect([isLate(), jest.getTimerCount()]).toEqual([true, 0]);
});

it('an upstream that takes nothing of an upload for 60 s is late, and a slow one is not', async () => {
  const { seen, isLate, send, read } = await uploading();
  send(10 * MiB);
  // What the upstream leaves does not count against the client.
  for (let minute = 0; minute < 10; minute++) {
    await read();
    await pass(59_999);
  }
  expect([seen, isLate()]).toEqual([{ received: 10 * 64 * KiB, status: undefined, ended: false }, false]);
  await pass(1);
  expect(isLate()).toBeTrue();
});

it('an upload whose upstream takes no connection is late after a minute', async () => {
  const { seen, isLate, send } = await uploading();
  send(64 * KiB);
  await pass(59_999);
  expect(isLate()).toBeFalse();
  await pass(1);
  expect([isLate(), seen.received]).toEqual([true, 0]);
});

it.each(['client', 'upstream'])(
  'an upload that is responded to while it waits for its %s has no deadline, and never seems whole',
  async (whom) => {
    const { seen, isLate, send, read, readAll, upload } = await uploading();
    send(64 * KiB);
    if (whom === 'client') void readAll();
    else await read();
    await pass(0);
    upload.stop();
    await pass(600_000);
    expect([seen, isLate()]).toEqual([{ received: 64 * KiB, status: undefined, ended: false }, false]);
    expect(jest.getTimerCount()).toBe(0);
  },
);

it('an upload that is responded to hands on no more, not even of what has arrived', async () => {
  const { seen, isLate, send, read, upload } = await uploading();
  send(128 * KiB);
  await read();
  upload.stop();
  void read();
  await pass(600_000);
  expect([seen.received, isLate(), jest.getTimerCount()]).toEqual([64 * KiB, false, 0]);
});
