import { expect, it } from 'bun:test';
import { releasedBody } from '../../support/released-body.ts';
import { BUFFERED, GENERATE, PROXIED_METHODS, PUBLIC, proxied } from '../../support/routes.ts';
import { startWorld } from '../../support/world.ts';

const STREAMS = [GENERATE, proxied('GET'), proxied('POST'), PUBLIC];

// How it breaks off: faults/faulty-upstream.test.ts.
it.each(STREAMS)(
  'the body for $name arrives as the upstream produces it',
  async ({ path, options, calls }) => {
    await using world = startWorld();
    const body = releasedBody();
    world.upstream.on(calls.join(), () => new Response(body.stream));
    body.release('first');
    const reader = (await world.request(path, options)).body?.getReader();
    const readText = async () => Buffer.from((await reader?.read())?.value ?? '').toString();
    expect(await readText()).toBe('first');
    body.release('second');
    body.end();
    expect(await readText()).toBe('second');
    expect((await reader?.read())?.done).toBe(true);
  },
);

// A generation continues: left-generation.test.ts.
it.each(STREAMS.slice(1))(
  'the body for $name is cancelled upstream when the client disconnects',
  async ({ path, options, calls }) => {
    await using world = startWorld();
    const body = releasedBody();
    world.upstream.on(calls.join(), () => new Response(body.stream));
    body.release('first');
    const client = new AbortController();
    const response = await world.request(path, { ...options, signal: client.signal });
    await response.body?.getReader().read();
    client.abort();
    await body.cancelled;
  },
);

it.each([...BUFFERED, ...PROXIED_METHODS.map(proxied), PUBLIC])(
  'a client that disconnects before the headers aborts the call: $name',
  async ({ path, options, calls }) => {
    // The deadline of a read would abort it, too.
    await using world = startWorld({ TIMEOUT_READ_MS: '280000' });
    const call = calls.join();
    const aborted = Promise.withResolvers<Response>();
    world.upstream.on(call, ({ signal }) => {
      signal.addEventListener('abort', () => aborted.resolve(new Response()));
      return aborted.promise;
    });
    const client = new AbortController();
    const left = world.request(path, { ...options, signal: client.signal });
    await world.upstream.arrived(call);
    client.abort();
    await expect(left).rejects.toThrow();
    await aborted.promise;
    expect(world.log).toEqual([]);
  },
);
