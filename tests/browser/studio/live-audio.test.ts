import { expect, it } from 'bun:test';
import type { LiveMessage } from '../../../src/client/live-audio/live-audio.ts';
import { describeInChromium } from '../chromium.ts';
import { openStudio } from './page.ts';

declare const post: (message: LiveMessage) => void;

describeInChromium('the service worker of the studio', (visit) => {
  it('serves each piece of a track as it comes, to one request, and nothing but audio', async () => {
    await using studio = await openStudio(visit, { isSignedIn: false });
    const { page, visitor } = studio;
    visitor.expectProblem(/status of 404/);
    visitor.tolerateProblem(/ERR_FAILED|\/live\//);
    await page.evaluate(() => {
      const post = (message: object) => navigator.serviceWorker.controller?.postMessage(message);
      Object.assign(window, { post });
    });
    const outcome = await page.evaluate(async () => {
      const piece = (id: string, ...values: number[]) =>
        post({ id, kind: 'piece', piece: new Uint8Array(values) });
      const begin = (id: string, contentType = 'audio/wav') => post({ id, kind: 'begin', contentType });
      // A request waits for its track, but not for ever. What the worker does not know is ignored.
      const asked: string[] = [];
      const ask = async (id: string) => {
        const response = await fetch(`/live/${id}`);
        asked.push(`${id} ${response.status} ${await response.bytes()}`);
      };
      piece('unknown', 1);
      const asking = [ask('unknown'), ask('early')];

      for (const id of ['one', 'other', 'broken']) begin(id);
      const response = await fetch('/live/one');
      // The Studio's server also responds with 404, but with its security headers.
      const second = await fetch('/live/one');
      const broken = await fetch('/live/broken');
      const reader = response.body?.getReader();
      const pieces: string[] = [];
      piece('other', 9);
      for (const values of [[1, 2], [3]]) {
        piece('one', ...values);
        pieces.push(String((await reader?.read())?.value));
      }
      for (const id of ['one', 'other']) post({ id, kind: 'end' });
      const { done } = (await reader?.read()) ?? {};
      const late = String(await (await fetch('/live/other')).bytes());
      piece('broken', 1);
      post({ id: 'broken', kind: 'break' });
      const body = await broken.bytes().catch(() => 'broken');
      begin('page', 'text/html');
      post({ id: 'page', kind: 'end' });
      const page = (await fetch('/live/page')).headers.get('content-type');
      const others = await Promise.all(['/', '/config.json', '/live', '/alive/x'].map((path) => fetch(path)));
      begin('early');
      piece('early', 1);
      post({ id: 'early', kind: 'end' });
      await Promise.all(asking);
      const names = ['content-type', 'cache-control', 'x-content-type-options', 'content-security-policy'];
      const headers = names.map((name) => response.headers.get(name));
      const isServers = ({ headers }: Response) => headers.has('referrer-policy');
      return {
        ...{ headers, pieces, done, late, body, page, asked },
        second: [second.status, isServers(second)],
        others: others.map(isServers),
      };
    });
    expect(outcome).toEqual({
      headers: ['audio/wav', 'no-store', 'nosniff', "sandbox; default-src 'none'"],
      pieces: ['1,2', '3'],
      done: true,
      second: [404, false],
      late: '9',
      body: 'broken',
      page: 'audio/mpeg',
      others: [true, true, true, true],
      asked: ['early 200 1', 'unknown 404 '],
    });
  });
});
