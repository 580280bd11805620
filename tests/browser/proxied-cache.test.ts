import { expect, it } from 'bun:test';
import { describeInChromium } from '../support/chromium.ts';
import { openForeignSite } from '../support/foreign-site.ts';
import { startWorld } from '../support/world.ts';

const PATHS = [
  ['a session’s', '/api/upstream/v1/genres', 'GET /v1/genres'],
  ['a public', '/api/upstream/v1/music/public/abc', 'GET /v1/music/public/abc'],
] as const;

describeInChromium('the browser’s cache', (visit) => {
  it.each(PATHS)('keeps %s response for the language in which it was asked for', async (_, path, call) => {
    await using studio = openForeignSite('localhost');
    await using world = startWorld({ ALLOWED_ORIGINS: studio.origin });
    world.upstream.on(call, ({ headers }) => {
      const language = headers.get('accept-language') ?? 'none';
      return new Response(`in ${language}`, {
        headers: { 'cache-control': 'max-age=600', vary: 'Accept-Language', 'content-language': language },
      });
    });
    await using visitor = await visit();
    const url = `http://localhost:${world.port}`;
    await visitor.context.addCookies([{ name: 'svc_music_access', value: 'access-1', url }]);
    const page = await visitor.open(`${studio.origin}/`);
    const ask = (language: string) =>
      page.evaluate(
        async ([address, acceptLanguage]) => {
          const headers = { 'accept-language': acceptLanguage };
          const response = await fetch(address, { credentials: 'include', headers });
          return response.text();
        },
        [url + path, language] as const,
      );
    expect(await ask('en')).toBe('in en');
    expect(await ask('en')).toBe('in en');
    // The second one came from the cache; otherwise this test would show nothing.
    expect(world.upstream.calls).toEqual([call]);
    expect(await ask('sw')).toBe('in sw');
    expect(world.upstream.calls).toEqual([call, call]);
    expect(world.upstream.last(call).headers.get('accept-language')).toBe('sw');
  });
});
