import { describe, expect, it } from 'bun:test';
import type { LiveMessage } from '../../../src/client/live-audio/live-audio.ts';
import { fakeTime } from '../fake-time.ts';

type Kind = LiveMessage['kind'];

const SOURCE = new URL('../../../src/client/live-audio/live-audio-worker.ts', import.meta.url).pathname;
const [script] = (await Bun.build({ entrypoints: [SOURCE], format: 'iife', target: 'browser' })).outputs;
const code = (await script?.text()) ?? '';

/** The ids of tracks. */
const [one, other] = [crypto.randomUUID(), crypto.randomUUID()];

/** The worker, with functions that send it what a page and the browser would. */
function startWorker() {
  const location = new URL('https://studio.test/live-audio-worker.js');
  const scope = Object.assign(new EventTarget(), { location });
  new Function('self', code)(scope);
  return {
    post(id: string, kind: Kind, more: { contentType?: string; piece?: Uint8Array } = {}) {
      scope.dispatchEvent(new MessageEvent('message', { data: { id, kind, ...more } }));
    },
    /** Undefined for a request that the worker leaves to the browser. */
    ask(address: string) {
      let response: Promise<Response> | undefined;
      const request = new Request(new URL(address, location));
      const respondWith = (given: Response | Promise<Response>) => {
        response = Promise.resolve(given);
      };
      scope.dispatchEvent(Object.assign(new Event('fetch'), { request, respondWith }));
      return response;
    },
  };
}

const piece = (...values: number[]) => ({ piece: new Uint8Array(values) });

describe('the worker that plays audio while it arrives', () => {
  it('streams each piece of a track as it comes, to one request', async () => {
    const { post, ask } = startWorker();
    for (const id of [one, other]) post(id, 'begin', { contentType: 'audio/wav' });
    const response = await ask(`/live/${one}`);
    expect(response?.headers.toJSON()).toEqual({
      'content-type': 'audio/wav',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'content-security-policy': "sandbox; default-src 'none'",
    });
    expect((await ask(`/live/${one}`))?.status).toBe(404);
    const reader = response?.body?.getReader();
    post(other, 'piece', piece(9));
    for (const values of [[1, 2], [3]]) {
      post(one, 'piece', piece(...values));
      expect(await reader?.read()).toEqual({ done: false, value: new Uint8Array(values) });
    }
    for (const id of [one, other]) post(id, 'end');
    expect(await reader?.read()).toMatchObject({ done: true });
    // Also what has come before the request.
    expect(await (await ask(`/live/${other}`))?.bytes()).toEqual(new Uint8Array([9]));
    for (const id of [one, other]) expect((await ask(`/live/${id}`))?.status).toBe(404);
  });

  it.each(['text/html', 'text/html; x=audio/'])(
    'breaks off a track that will not be complete, and serves nothing but audio: %s',
    async (contentType) => {
      const { post, ask } = startWorker();
      post(one, 'begin', { contentType });
      const response = await ask(`/live/${one}`);
      expect(response?.headers.get('content-type')).toBe('audio/mpeg');
      post(one, 'break');
      await expect(response?.bytes() ?? null).rejects.toBeUndefined();
    },
  );

  it.each([
    ...['/', '/config.json', '/live', '/live/', '/live/stream.m3u8', '/alive/<id>', '/app/live/<id>'],
    ...['/live/<id>/edit', '/live/a<id>', 'https://cdn.test/live/<id>', 'https://cdn.test/live/stream.m3u8'],
  ])('leaves a request for %s to the browser', (address) => {
    const { post, ask } = startWorker();
    post(one, 'begin', { contentType: 'audio/wav' });
    expect(ask(address.replace('<id>', one))).toBeUndefined();
  });

  it('lets a request wait for its track, but not for ever, and ignores pieces of a track that it does not know', async () => {
    const advance = fakeTime();
    const { post, ask } = startWorker();
    post(other, 'piece', piece(1));
    const [unknown, early] = [ask(`/live/${other}`), ask(`/live/${one}`)];
    await advance(4_999);
    post(one, 'begin', { contentType: 'audio/wav' });
    post(one, 'piece', piece(1));
    post(one, 'end');
    expect(await (await early)?.bytes()).toEqual(new Uint8Array([1]));
    await advance(1);
    expect((await unknown)?.status).toBe(404);
  });
});
