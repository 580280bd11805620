/** What `deploy/your-api.md` says of an API: its calls, and its programs. */

import { expect, it } from 'bun:test';
import { Type } from '@sinclair/typebox';
import { createGatewayClient } from '../../../src/client/gateway-client.ts';
import { signInThroughForm } from '../../../src/demo/tour/sign-in-through-form.ts';
import { ROOT, readDocument, section } from '../../support/documents.ts';
import { eventually } from '../../support/eventually.ts';
import { freePorts } from '../../support/free-ports.ts';
import { itWith, program } from '../../support/requirements.ts';
import { exchangeCode, readJson, SANDBOX_CLIENT, startTestSandbox } from '../../support/sandbox-account.ts';
import { GRANT, signIn, signOut, TOKEN } from '../../support/session-calls.ts';
import { createFolder } from '../../support/temporary-folder.ts';
import { expectCleared, ORIGIN, SIGNED_IN, startWorld, storedTokens } from '../../support/world.ts';

const DOCUMENT = await readDocument('deploy/your-api.md');

/** A call of the page, and what comes back, in which `...` stands for anything. */
const EXAMPLE = /```sh\n(.*?)```\n(?:\n```\w+\n(.*?)```)?/gs;

/** Whether each line of the expected text, or its JSON, is in what was printed. */
function problemsWith(printed: string, expected: string): string[] {
  const pattern = (line: string) =>
    new RegExp(`^${RegExp.escape(line.trim()).replaceAll('\\.\\.\\.', '.+')}\\r?$`, 'im');
  const compact = (text: string) =>
    text.trimStart().startsWith('{') ? JSON.stringify(JSON.parse(text)) : text;
  const lines = compact(expected).trim().split('\n').filter(Boolean);
  return lines.filter((line) => !pattern(line).test(printed)).map((line) => `no ${line} in: ${printed}`);
}

itWith([program('curl')], 'the sandbox is what the page about your API says, word for word', async () => {
  await using folder = await createFolder();
  await using sandbox = await startTestSandbox();
  const { identityProviderUrl, upstream } = sandbox;
  const grant = await signInThroughForm({ ...SANDBOX_CLIENT, identityProviderUrl, name: 'Ada' });
  const identity = await exchangeCode(sandbox, grant.code, grant.codeVerifier);
  const { access_token: token } = await readJson(identity, Type.Object({ access_token: Type.String() }));
  const variables = new Map([
    ['API', upstream.url],
    ['IDENTITY', token],
    ['KEY', crypto.randomUUID()],
  ]);
  const examples = [...DOCUMENT.text.matchAll(EXAMPLE)];
  expect(examples).toHaveLength(7);
  for (const [, command = '', expected = ''] of examples) {
    const env = { PATH: process.env['PATH'], ...Object.fromEntries(variables) };
    // Not `spawnSync`: the sandbox is in this process.
    const call = Bun.spawn(['sh', '-c', command], { cwd: folder.path, env, stdout: 'pipe' });
    const printed = await call.stdout.text();
    expect([await call.exited, ...problemsWith(printed, expected)]).toEqual([0]);
    const found = [
      ['ACCESS', /"access_token":"([^"]+)"/],
      ['REFRESH', /"refresh_token":"([^"]+)"/],
      ['CREATION', /^x-music-creation-id: (\S+)/im],
    ] as const;
    for (const [name, place] of found) {
      const value = place.exec(printed)?.[1];
      if (value !== undefined) variables.set(name, value);
    }
  }
});

/** Starts a program of the page, and waits until it responds. */
async function startProgram(
  stack: AsyncDisposableStack,
  name: string,
  port: number,
  environment: Record<string, string>,
): Promise<void> {
  const program = Bun.spawn([process.execPath, `${ROOT}deploy/your-api/${name}`], {
    env: { PORT: `${port}`, ...environment },
    // Bun prints the error that breaks a cancelled track off.
    stdio: ['ignore', 'ignore', 'ignore'],
  });
  stack.defer(async () => {
    program.kill();
    await program.exited;
  });
  const responds = () =>
    fetch(`http://127.0.0.1:${port}/api/health`).then(
      () => true,
      () => false,
    );
  await eventually(responds, name);
}

const LIBRARY = 'GET /v1/library?page=2';

it('the program for the tokens of an identity provider signs in, renews, relays and signs out', async () => {
  await using stack = new AsyncDisposableStack();
  const port = await freePorts(1);
  const url = `http://127.0.0.1:${port}`;
  const world = stack.use(startWorld({ UPSTREAM_URL: url, IDP_TOKEN_URL: `${url}/oauth/token` }));
  const { upstream } = world;
  const addresses = {
    TOKEN_URL: `${upstream.identityProviderUrl}/oauth/token`,
    REVOCATION_URL: `${upstream.identityProviderUrl}/oauth/revoke`,
    API_URL: upstream.upstreamUrl,
  };
  upstream.on('GET /api/health', () => new Response());
  await startProgram(stack, 'provider-tokens.ts', port, { ...addresses, CLIENT_ID: 'studio' });

  const provides = (status: number, tokens: object) =>
    upstream.on(TOKEN, () => Response.json(tokens, { status }));
  const asked = () => Object.fromEntries(new URLSearchParams(upstream.last(TOKEN).body));
  provides(200, { access_token: 'provider-1', refresh_token: 'refresh-1', expires_in: 60, id_token: 'i' });
  const signedIn = await signIn(world);
  expect(storedTokens(signedIn)).toEqual({ svc_music_access: 'provider-1', svc_music_refresh: 'refresh-1' });
  expect(asked()).toMatchObject({ grant_type: 'authorization_code', ...GRANT });

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
  await signOut(world, 'svc_music_access=provider-2; svc_music_refresh=refresh-1');
  const revoked = new URLSearchParams(upstream.last('POST /oauth/revoke').body);
  expect(Object.fromEntries(revoked)).toEqual({ token: 'refresh-1', client_id: 'studio' });

  provides(400, { error: 'invalid_grant' });
  const other = { ...library, cookie: 'svc_music_access=access-9; svc_music_refresh=refresh-9' };
  expectCleared(await world.request('/api/upstream/v1/library?page=2', other));
  expect((await signIn(world)).status).toBe(400);
});

it('the sample of orders is what the page says, and does it behind the gateway', async () => {
  const code = await Bun.file(`${ROOT}deploy/your-api/sample-api.ts`).text();
  const excerpts = [...section(DOCUMENT, '## Orders').matchAll(/```ts\n(.*?)```/gs)].map(
    ([, text = '']) => text,
  );
  const [key, cancelled, ordered = '', followed] = excerpts;
  const unindented = code.replace(/^ +/gm, '');
  for (const excerpt of [key, followed]) expect(unindented).toContain(excerpt?.replace(/^ +/gm, '') ?? '-');
  expect([excerpts.length, cancelled]).toEqual([4, expect.stringContaining("{ method: 'DELETE' }")]);
  const [, prefix = '-'] = /get\('location'\)\?\.replace\('(.+)', ''\)/.exec(ordered) ?? [];

  await using stack = new AsyncDisposableStack();
  const port = await freePorts(1);
  await startProgram(stack, 'sample-api.ts', port, { PIECE_MS: '50' });
  const world = stack.use(startWorld({ UPSTREAM_URL: `http://127.0.0.1:${port}` }));
  world.upstream.on(TOKEN, () => Response.json({ access_token: 'ada' }));
  const tokens = storedTokens(await signIn(world));
  expect(tokens).toEqual({ svc_music_access: 'ada', svc_music_refresh: 'ada' });

  const client = createGatewayClient({
    baseUrl: world.url,
    fetch: (url, { headers, ...init }) =>
      fetch(url, {
        ...init,
        headers: { ...headersOf(headers), origin: ORIGIN, cookie: 'svc_music_access=ada' },
      }),
  });
  const path = '/v1/music';
  const order = { lyrics: 'Rain, rain' };
  const generate = async (idempotencyKey: string, ordered = order) => {
    const { body, creationId } = await client.generate(ordered, { path, idempotencyKey });
    return { creationId, audio: await new Response(body).bytes() };
  };
  const [first, joined] = await Promise.all([generate('k-1'), generate('k-1')]);
  expect([joined, first.audio.length]).toEqual([first, 50_044]);
  const other = { lyrics: 'Sun' };
  await expect(generate('k-1', other)).rejects.toMatchObject({ status: 422, retryIsSafe: true });

  const job = { method: 'POST', body: JSON.stringify(order), headers: { 'idempotency-key': 'k-2' } };
  const { status, headers } = await client.upstream('/v1/music?job', job);
  expect([status, headers.get('location')]).toEqual([202, `${prefix}/v1/orders/k-2`]);
  const eventsAfter = async (id: string) => {
    const events = await client.upstream('/v1/orders/k-2/events', { headers: { 'last-event-id': id } });
    const sent = (await events.text()).matchAll(/^id: (\d+)\ndata: (.*)$/gm);
    return Array.from(sent, ([, sentId = '', data = '']) => [sentId, JSON.parse(data).status]);
  };
  const [events, later] = await Promise.all([eventsAfter('-1'), eventsAfter('0')]);
  expect([events[0]?.[1], events.at(-1), later.at(-1)]).toEqual([
    'making',
    ['50044', 'ready'],
    events.at(-1),
  ]);
  expect(later.map(([id]) => id)).not.toContain('0');
  expect([await eventsAfter('47500'), await eventsAfter('50044')]).toEqual([[['50044', 'ready']], []]);
  expect(await client.upstreamData('/v1/orders/k-2')).toMatchObject({ status: 'ready' });

  const { body } = await client.generate(order, { path, idempotencyKey: 'k-3' });
  await client.upstream('/v1/orders/k-3', { method: 'DELETE' });
  await expect(new Response(body).bytes()).rejects.toMatchObject({ code: 'refused', cause: { status: 404 } });
  await expect(generate('k-3')).rejects.toMatchObject({ status: 410 });
  await expect(client.upstream('/v1/orders/k-1', { method: 'DELETE' })).rejects.toMatchObject({
    status: 409,
  });
});

function headersOf(headers: RequestInit['headers']) {
  return Object.fromEntries(new Headers(headers));
}
