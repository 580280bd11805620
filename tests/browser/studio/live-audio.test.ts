import { expect, it } from 'bun:test';
import type { LiveMessage } from '../../../src/client/live-audio/live-audio.ts';
import { describeInChromium } from '../../support/chromium.ts';
import { openStudio, type Studio } from './page.ts';

/** Gives the page `post`, which posts a message to its service worker. */
async function connectWorker({ page }: Studio): Promise<void> {
  // The first visit: a worker that waited for the next one would leave the page without a controller.
  await page.waitForFunction(() => navigator.serviceWorker.controller !== null);
  await page.evaluate(() => {
    const post = (message: object) => navigator.serviceWorker.controller?.postMessage(message);
    Object.assign(window, { post });
  });
}

declare const post: (message: LiveMessage) => void;

describeInChromium('the service worker of the studio', (visit) => {
  it('serves each piece of a track as it comes, to one request, uncached', async () => {
    await using studio = await openStudio(visit, { isSignedIn: false });
    await connectWorker(studio);
    studio.visitor.expectProblem(/status of 404/);
    const outcome = await studio.page.evaluate(async () => {
      for (const id of ['one', 'other']) post({ id, kind: 'begin', contentType: 'audio/wav' });
      const response = await fetch('/live/one');
      // The Studio's server also responds with 404, but with its security headers.
      const second = await fetch('/live/one');
      const reader = response.body?.getReader();
      const pieces: string[] = [];
      post({ id: 'other', kind: 'piece', piece: new Uint8Array([9]) });
      for (const values of [[1, 2], [3]]) {
        post({ id: 'one', kind: 'piece', piece: new Uint8Array(values) });
        pieces.push(String((await reader?.read())?.value));
      }
      for (const id of ['one', 'other']) post({ id, kind: 'end' });
      const { done } = (await reader?.read()) ?? {};
      const late = String(await (await fetch('/live/other')).bytes());
      const names = ['content-type', 'cache-control', 'x-content-type-options', 'content-security-policy'];
      const headers = names.map((name) => response.headers.get(name));
      return { headers, pieces, done, late, second: [second.status, second.headers.has('referrer-policy')] };
    });
    expect(outcome).toEqual({
      headers: ['audio/wav', 'no-store', 'nosniff', "sandbox; default-src 'none'"],
      pieces: ['1,2', '3'],
      done: true,
      late: '9',
      second: [404, false],
    });
  });

  it('serves nothing but audio', async () => {
    await using studio = await openStudio(visit, { isSignedIn: false });
    await connectWorker(studio);
    const type = await studio.page.evaluate(async () => {
      post({ id: 'page', kind: 'begin', contentType: 'text/html' });
      post({ id: 'page', kind: 'end' });
      return (await fetch('/live/page')).headers.get('content-type');
    });
    expect(type).toBe('audio/mpeg');
  });

  it('fails the body of a track that breaks off, and leaves other paths to the network', async () => {
    await using studio = await openStudio(visit, { isSignedIn: false });
    await connectWorker(studio);
    studio.visitor.tolerateProblem(/ERR_FAILED|\/live\//);
    studio.visitor.expectProblem(/status of 404/);
    const outcome = await studio.page.evaluate(async () => {
      post({ id: 'broken', kind: 'begin', contentType: 'audio/wav' });
      const response = await fetch('/live/broken');
      post({ id: 'broken', kind: 'piece', piece: new Uint8Array([1]) });
      post({ id: 'broken', kind: 'break' });
      const body = await response.arrayBuffer().catch(() => 'broken');
      const others = await Promise.all(['/', '/config.json', '/live', '/alive/x'].map((path) => fetch(path)));
      return [body, ...others.map(({ headers }) => headers.has('referrer-policy'))];
    });
    expect(outcome).toEqual(['broken', true, true, true, true]);
  });

  it('keeps a request waiting for its track, but not for ever', async () => {
    await using studio = await openStudio(visit, { isSignedIn: false });
    await connectWorker(studio);
    studio.visitor.expectProblem(/status of 404/);
    const outcome = await studio.page.evaluate(async () => {
      const finished: string[] = [];
      const ask = async (id: string) => {
        const response = await fetch(`/live/${id}`);
        finished.push(`${id} ${response.status} ${new Uint8Array(await response.arrayBuffer())}`);
      };
      post({ id: 'unknown', kind: 'piece', piece: new Uint8Array([1]) });
      const asked = [ask('unknown'), ask('early')];
      await new Promise(requestAnimationFrame);
      post({ id: 'early', kind: 'begin', contentType: 'audio/wav' });
      post({ id: 'early', kind: 'piece', piece: new Uint8Array([1]) });
      post({ id: 'early', kind: 'end' });
      await Promise.all(asked);
      return finished;
    });
    expect(outcome).toEqual(['early 200 1', 'unknown 404 ']);
  });
});
