import { describe, expect, it } from 'bun:test';
import { breakTwice, generateDisturbed, ONCE, onceAt, replaceContent } from './disturbed-generation.ts';
import { rejection } from './page.ts';
import { openRecoveryWorld, undisturbedHash } from './recovery-world.ts';

describe('the audio after a break', () => {
  it.each<[string, (own: Response) => Response | Promise<Response>]>([
    ['of another length', (own) => withHeader(own, 'content-range', (range) => range.replace(/\d+$/, '7'))],
    [
      'from another position',
      (own) => withHeader(own, 'content-range', (range) => range.replace(/\d+/, '7')),
    ],
    ['whole instead of its rest', async (own) => new Response(await own.bytes())],
    ['without the range that was asked for', () => new Response(null, { status: 416 })],
    [
      'of other music',
      async (own) =>
        new Response(
          (await own.bytes()).map((byte) => byte ^ 1),
          own,
        ),
    ],
  ])('%s ends the generation instead of being appended', async (_, change) => {
    await using world = await openRecoveryWorld({ pace: 40 });
    let id = '';
    const cut = onceAt(world, 0.5, (creationId) => {
      id = creationId;
      replaceContent(world, creationId, async (forward) => {
        const own = await forward();
        return own.status === 206 ? change(own) : own;
      });
      world.network.break();
    });
    const error = await rejection(generateDisturbed(world, cut));
    expect(error).toMatchObject({ name: 'RecoveryError', code: 'changed', creationId: id });
    expect(await world.account()).toEqual(ONCE);
  });
});

describe('the validator of the audio', () => {
  it.each(['"another"', 'W/"weak"', undefined])('that turns to %p ends the generation', async (etag) => {
    await using world = await openRecoveryWorld({ pace: 40 });
    const disturb = breakTwice(world, (own) => {
      const headers = new Headers(own.headers);
      headers.delete('etag');
      if (etag !== undefined) headers.set('etag', etag);
      return new Response(own.body, { status: own.status, headers });
    });
    const error = await rejection(generateDisturbed(world, disturb));
    expect(error).toMatchObject({ name: 'RecoveryError', code: 'changed' });
  });
});

describe('a rest without a total length', () => {
  it('that ends before the place that it has named is asked for again', async () => {
    await using world = await openRecoveryWorld({ pace: 40 });
    const cut = onceAt(world, 0.5, (creationId) => {
      replaceContent(world, creationId, async (forward) => {
        const own = await forward();
        if (own.status !== 206) return own;
        replaceContent(world, creationId, (again) => again());
        const short = new Response((await own.bytes()).subarray(0, 5_000), own);
        return withHeader(short, 'content-range', (range) => range.replace(/\d+$/, '*'));
      });
      world.network.break();
    });
    const { hash } = await generateDisturbed(world, cut);
    expect(hash).toBe(undisturbedHash());
  });
});

/** The same response with one header changed. */
function withHeader(response: Response, name: string, change: (value: string) => string): Response {
  const headers = new Headers(response.headers);
  headers.set(name, change(headers.get(name) ?? ''));
  return new Response(response.body, { status: response.status, headers });
}
