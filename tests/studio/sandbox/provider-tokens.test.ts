import { expect, it } from 'bun:test';
import { ROOT, readDocument } from '../../support/documents.ts';
import { eventually } from '../../support/eventually.ts';
import { freePorts } from '../../support/free-ports.ts';
import { isUp } from '../../support/is-up.ts';
import { SIGN_IN } from '../../support/routes.ts';
import { runToEnd } from '../../support/run-to-end.ts';
import { expectCleared, SIGNED_IN, startWorld, storedTokens } from '../../support/world.ts';
import { samplesIn } from '../samples.ts';
import { createFolder } from '../temporary-folder.ts';

const LIBRARY = 'GET /v1/library?page=2';

it('the sketch for the tokens of an identity provider signs in, renews, relays and signs out', async () => {
  await using stack = new AsyncDisposableStack();
  const { path: folder } = stack.use(await createFolder());
  const { text } = await readDocument('deploy/your-api.md');
  const port = await freePorts(1);
  const url = `http://127.0.0.1:${port}`;
  for (const [name, code] of samplesIn(text, { 4300: `${port}` })) await Bun.write(`${folder}/${name}`, code);
  const compilerOptions = { typeRoots: [`${ROOT}node_modules`], types: ['bun-types'] };
  const tsconfig = { extends: `${ROOT}tsconfig.json`, compilerOptions, include: ['*.ts'] };
  await Bun.write(`${folder}/tsconfig.json`, JSON.stringify(tsconfig));
  const check = await runToEnd([process.execPath, 'check', '--no-script', '--no-pretty', '-p', folder]);
  expect(check).toMatchObject({ status: 0 });

  const world = stack.use(startWorld({ UPSTREAM_URL: url, IDP_TOKEN_URL: `${url}/oauth/token` }));
  const { upstream } = world;
  const sketch = Bun.spawn([process.execPath, `${folder}/provider-tokens.ts`], {
    env: {
      TOKEN_URL: `${upstream.identityProviderUrl}/oauth/token`,
      REVOCATION_URL: `${upstream.identityProviderUrl}/oauth/revoke`,
      API_URL: upstream.upstreamUrl,
      CLIENT_ID: 'studio',
    },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  stack.defer(async () => {
    sketch.kill();
    await sketch.exited;
  });
  upstream.on('GET /api/health', () => new Response());
  await eventually(() => isUp(url), 'the sketch');

  const provides = (status: number, tokens: object) =>
    upstream.on('POST /oauth/token', () => Response.json(tokens, { status }));
  const asked = () => Object.fromEntries(new URLSearchParams(upstream.last('POST /oauth/token').body));
  provides(200, { access_token: 'provider-1', refresh_token: 'refresh-1', expires_in: 60, id_token: 'i' });
  const signedIn = await world.request('/api/auth/idp', { json: SIGN_IN });
  expect(storedTokens(signedIn)).toEqual({ svc_music_access: 'provider-1', svc_music_refresh: 'refresh-1' });
  const { code, code_verifier } = SIGN_IN;
  expect(asked()).toMatchObject({ grant_type: 'authorization_code', code, code_verifier });

  // The provider does not rotate, and the API compresses.
  provides(200, { access_token: 'provider-2', expires_in: 60 });
  const body = Bun.gzipSync(Buffer.from('the library'));
  upstream.on(LIBRARY, ({ headers }) =>
    headers.get('authorization') === 'Bearer provider-2'
      ? new Response(body, { headers: { 'content-encoding': 'gzip' } })
      : new Response(null, { status: 401 }),
  );
  const library = { cookie: SIGNED_IN, headers: { 'accept-encoding': 'gzip' } };
  const read = await world.request('/api/upstream/v1/library?page=2', library);
  expect([read.status, await read.text()]).toEqual([200, 'the library']);
  expect(asked()).toEqual({ grant_type: 'refresh_token', refresh_token: 'refresh-1', client_id: 'studio' });
  expect(storedTokens(read)).toEqual({ svc_music_access: 'provider-2', svc_music_refresh: 'refresh-1' });

  upstream.on('POST /oauth/revoke', () => new Response());
  const session = 'svc_music_access=provider-2; svc_music_refresh=refresh-1';
  await world.request('/api/auth/logout', { method: 'POST', cookie: session });
  const revoked = new URLSearchParams(upstream.last('POST /oauth/revoke').body);
  expect(Object.fromEntries(revoked)).toEqual({ token: 'refresh-1', client_id: 'studio' });

  provides(400, { error: 'invalid_grant' });
  const other = { ...library, cookie: 'svc_music_access=access-9; svc_music_refresh=refresh-9' };
  expectCleared(await world.request('/api/upstream/v1/library?page=2', other));
  expect((await world.request('/api/auth/idp', { json: SIGN_IN })).status).toBe(400);
});
