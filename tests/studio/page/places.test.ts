import { expect, it } from 'bun:test';
import { createPlaces } from '../../../src/demo/studio/places.ts';
import { settle } from '../../client/fake-time.ts';

it('one work has the place, and the others wait in turn, until they get it or give up', async () => {
  const places = createPlaces(1);
  const events: string[] = [];
  const begin = (name: string) => {
    const { promise, resolve: finish, reject: fail } = Promise.withResolvers<void>();
    const abort = new AbortController();
    const work = () => {
      events.push(name);
      return promise;
    };
    const done = places.during(abort.signal, () => events.push(`${name} waits`), work).catch(String);
    return { finish, fail, abort: () => abort.abort('has left'), done };
  };
  const take = async () => {
    await settle();
    return events.splice(0).join(', ');
  };
  const [a, b, c] = [begin('a'), begin('b'), begin('c')];
  expect(await take()).toBe('b waits, c waits, a');
  b.abort();
  expect([await b.done, await take()]).toEqual(['has left', '']);
  a.fail('lost');
  expect(await a.done).toBe('lost');
  // A newcomer must not push in, and the place is not lost with somebody who gives up in the moment of getting it.
  begin('d');
  c.abort();
  c.finish();
  expect(await take()).toBe('d waits, c, d');
});
