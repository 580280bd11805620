import { expect, it } from 'bun:test';
import { createPlaces } from '../../../src/demo/studio/places.ts';
import { settle } from '../../client/fake-time.ts';

it('Two works have a place at once, and the others wait in turn, until they get one or give up', async () => {
  const places = createPlaces(2);
  const events: string[] = [];
  const begin = (name: string) => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const abort = new AbortController();
    const work = () => {
      events.push(name);
      return promise;
    };
    const done = places.during(abort.signal, () => events.push(`${name} waits`), work).catch(String);
    return { finish: resolve, fail: reject, abort: (reason: string) => abort.abort(reason), done };
  };
  const take = async () => {
    await settle();
    return events.splice(0).join(', ');
  };
  const [a, b, c, d] = [begin('a'), begin('b'), begin('c'), begin('d')];
  begin('e');
  expect(await take()).toBe('c waits, d waits, e waits, a, b');
  c.abort('c has left');
  expect([await c.done, await take()]).toEqual(['c has left', '']);
  // Both places at once, for which a newcomer must not push in.
  a.finish();
  b.fail('lost');
  await a.done;
  const f = begin('f');
  expect(await b.done).toBe('lost');
  expect((await take()).split(', ').toSorted()).toEqual(['d', 'e', 'f waits']);
  // The place is not lost with somebody who gives up in the moment of getting it.
  d.finish();
  await d.done;
  f.abort('f has left');
  f.finish();
  expect(await take()).toBe('f');
  begin('g');
  expect(await take()).toBe('g');
});
