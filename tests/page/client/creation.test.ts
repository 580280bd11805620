import { describe, expect, it } from 'bun:test';
import { eventually } from '../../support/eventually.ts';
import { rejection, shareSignedIn } from './page.ts';

const CONTENT = 'HEAD /v1/music/creations/7/content';
const CREATION = 'GET /v1/music/creations/7';

describe('a creation', () => {
  const signedIn = shareSignedIn();

  it('is read by its id, without the data around it', async () => {
    const { world, client } = signedIn();
    world.upstream.on(CREATION, () => Response.json({ data: { id: '7', status: 'generating' } }));
    expect(await client.creation('7')).toEqual({ id: '7', status: 'generating' });
    expect(await rejection(client.creation('../../browser'))).toMatchObject({ status: 404 });
  });

  it('is awaited until its audio can be read', async () => {
    const { world, client } = signedIn();
    const statuses = [409, 503, 200];
    const calls = world.upstream.calls.length;
    world.upstream.on(CONTENT, () => new Response(null, { status: statuses.shift() ?? 599 }));
    world.upstream.on(CREATION, () => Response.json({ data: { id: '7', status: 'ready' } }));
    expect(await client.awaitCreation('7')).toEqual({ id: '7', status: 'ready' });
    expect(world.upstream.calls.slice(calls)).toEqual([CONTENT, CONTENT, CONTENT, CREATION]);
  });

  it('is no longer awaited after a refusal', async () => {
    const { world, client } = signedIn();
    world.upstream.on(CONTENT, () => new Response(null, { status: 404 }));
    expect(await rejection(client.awaitCreation('7'))).toMatchObject({ status: 404 });
  });

  it('is no longer awaited once the signal is aborted, not even between two attempts', async () => {
    const { world, client } = signedIn();
    const reason = new Error('the user has left');
    const abort = new AbortController();
    world.upstream.on(CONTENT, () => {
      const headers = { 'retry-after': '100' };
      return new Response(null, { status: 503, headers });
    });
    const awaited = client.awaitCreation('7', { signal: abort.signal });
    const outcome = rejection(awaited);
    await world.upstream.arrived(CONTENT);
    await world.roundTrip();
    abort.abort(reason);
    expect(await outcome).toBe(reason);
  });

  it('is asked for at once when the browser is online again', async () => {
    const { world, client } = signedIn();
    let status = 503;
    world.upstream.on(CONTENT, () => new Response(null, { status, headers: { 'retry-after': '100' } }));
    world.upstream.on(CREATION, () => Response.json({ data: { id: '7' } }));
    const found: unknown[] = [];
    const awaited = client.awaitCreation('7').then((creation) => found.push(creation));
    await world.upstream.arrived(CONTENT);
    status = 200;
    await eventually(() => {
      dispatchEvent(new Event('online'));
      return found.length > 0;
    }, 'the creation');
    await awaited;
    expect(found).toEqual([{ id: '7' }]);
  });
});
