/** `fetch` as a page of the web app has it: it reads only what CORS lets its scripts read. */

import { ORIGIN } from '../../support/world.ts';

export function fetchWith(cookie: string) {
  return async (url: string, init: RequestInit) => {
    const headers = { ...Object.fromEntries(new Headers(init.headers)), origin: ORIGIN, cookie };
    const response = await fetch(url, { ...init, headers });
    if (response.headers.get('access-control-allow-origin') !== ORIGIN)
      throw new TypeError('Failed to fetch');
    const exposed = response.headers.get('access-control-expose-headers')?.toLowerCase().split(', ') ?? [];
    const readable = [...response.headers].filter(([name]) => ['content-type', ...exposed].includes(name));
    return new Response(response.body, { status: response.status, headers: readable });
  };
}
