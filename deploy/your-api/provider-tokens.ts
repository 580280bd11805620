/** Stands between the gateway and a plain resource server, and uses the tokens of its identity provider. */

const { PORT = '4300', TOKEN_URL = '', REVOCATION_URL = '', API_URL = '', CLIENT_ID = '' } = process.env;

const post = (url: string, form: string | Record<string, string>) =>
  fetch(url, { method: 'POST', body: new URLSearchParams(form) });
const read = async (message: Request | Response) => JSON.parse(await message.text());

Bun.serve({
  hostname: '127.0.0.1',
  port: Number(PORT),
  idleTimeout: 0,
  error: () => Response.json({ error: { message: 'The API cannot be reached' } }, { status: 502 }),
  routes: {
    '/oauth/token': async (request) => {
      const response = await post(TOKEN_URL, await request.text());
      const tokens = await response.text();
      if (!response.ok) return new Response(tokens, { status: response.status });
      // The gateway hands on one token, so this one contains them all.
      return Response.json({ access_token: Buffer.from(tokens).toString('base64url') });
    },
    '/v1/auth/idp': async (request) => {
      const { access_token } = await read(request);
      return new Response(Buffer.from(access_token, 'base64url'));
    },
    '/v1/auth/refresh': async (request) => {
      const { refresh_token } = await read(request);
      const form = { grant_type: 'refresh_token', refresh_token, client_id: CLIENT_ID };
      const response = await post(TOKEN_URL, form);
      // A provider that does not rotate need not return it.
      return Response.json({ refresh_token, ...(await read(response)) }, { status: response.status });
    },
    '/v1/auth/logout': async (request) => {
      const { refresh_token } = await read(request);
      return post(REVOCATION_URL, { token: refresh_token, client_id: CLIENT_ID });
    },
  },
  fetch({ url, method, headers, body, signal }) {
    const { pathname, search } = new URL(url);
    headers.delete('host');
    const init = { method, headers, body, signal, redirect: 'manual', decompress: false } as const;
    return fetch(API_URL + pathname + search, init);
  },
});
