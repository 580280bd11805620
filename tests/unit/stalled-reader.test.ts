import { afterEach, expect, it, setSystemTime } from 'bun:test';
import { observe } from '../../src/gateway/http/observed-body.ts';
import { RequestRecord } from '../../src/gateway/record/request-record.ts';

afterEach(() => void setSystemTime());

it('observe() blames the client that stalled, not the upstream, when Bun cut its connection', async () => {
  const record = new RequestRecord(new Request('http://gateway.test'));
  const stream = new ReadableStream({ start: (body) => body.enqueue(new Uint8Array(9)) });
  const { source } = observe({ reader: stream.getReader() }, record);
  const isWritten = Promise.withResolvers<void>();
  void source.pull({
    write: () => {
      isWritten.resolve();
      return new Promise<number>(() => {});
    },
    end: () => 0,
    flush: () => 0,
    start: () => {},
    close: () => {},
  });
  await isWritten.promise;
  setSystemTime(Date.now() + 60_000);
  await source.cancel?.();
  expect(record).toMatchObject({ clientGone: 'streaming', brokenBody: false, cause: undefined });
});
