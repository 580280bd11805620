/**
 * What RFC 10017 asks of a backend for frontend beyond the contract, of a gateway in production with all settings that
 * harden it. Each in all its cases: SECURITY.md. That a certified provider takes the assertion: process/check-config.
 *
 * @see RFC 10017 section 6.1.3
 */

import { beforeEach, expect, it } from 'bun:test';
import { decodeProtectedHeader } from 'jose';
import { clientKeyPair } from '../../support/client-keys.ts';
import { readDocument, section } from '../../support/documents.ts';
import {
  accept,
  checkSession,
  LOGOUT,
  ME,
  pair,
  REFRESH,
  reply,
  scriptSignIn,
  sentBack,
  signIn,
  signOut,
  TOKEN,
} from '../../support/session-calls.ts';
import { sharedWorld } from '../../support/shared-world.ts';
import { SIGNED_IN } from '../../support/world.ts';

const PREFIX = '__Host-Http-';
const NAMES = [`${PREFIX}svc_music_access`, `${PREFIX}svc_music_refresh`];
const SECRETS = new Map([
  ['COOKIE_KEYS', Buffer.alloc(32, 7).toString('base64url')],
  ['IDP_CLIENT_KEY', clientKeyPair('ES256').privateJwk],
]);
/** As the operating page has it, with keys where it has none. */
const PAGE = section(await readDocument('deploy/README.md'), '### The hardened set');
const SETTINGS = Array.from(PAGE.matchAll(/^([A-Z_]+)=(.*)$/gm), ([, name = '', value = '']) => [
  name,
  SECRETS.get(name) ?? value,
]);

const world = sharedWorld(Object.fromEntries(SETTINGS));
beforeEach(() => {
  scriptSignIn(world);
  world.upstream.on(ME, accept('access-1')).on(LOGOUT, reply(204));
});

/** Asserts names and attributes, that no token is in it, and gives the cookies; the contract has their lifetimes. */
function hardenedCookies(response: Response): string {
  const lines = response.headers.getSetCookie();
  const found = lines.map((line) => line.replace(/=[^;]*/, '').replace(/Max-Age=\d+/, 'Max-Age'));
  expect(found).toEqual(NAMES.map((name) => `${name}; Path=/; Max-Age; Secure; HttpOnly; SameSite=Strict`));
  expect(JSON.stringify([...response.headers])).not.toMatch(/(?:access|refresh|identity)-\d/);
  return sentBack(response);
}

it('6.1.3.1: the gateway authenticates with its key, so a stolen code is worth nothing without it', async () => {
  expect((await signIn(world)).status).toBe(200);
  const form = new URLSearchParams(world.upstream.last(TOKEN).body);
  expect(decodeProtectedHeader(form.get('client_assertion') ?? '')).toMatchObject({ alg: 'ES256' });
});

it('6.1.3.2: cookies have encrypted contents, and all attributes and a prefix until the session ends', async () => {
  const signedIn = await signIn(world);
  const cookie = hardenedCookies(signedIn);
  for (const line of signedIn.headers.getSetCookie())
    expect(decodeProtectedHeader(Bun.Cookie.parse(line).value)).toMatchObject({ enc: 'A256GCM' });
  world.upstream.received.length = 0;
  const plain = SIGNED_IN.replaceAll('svc', `${PREFIX}svc`);
  // Neither a token nor another name is a session.
  for (const each of [plain, cookie.replaceAll(PREFIX, '')])
    expect(await (await checkSession(world, each)).json()).toEqual({ authenticated: false });
  expect(world.upstream.calls).toEqual([]);
  world.upstream.on(ME, accept('access-2')).on(REFRESH, reply(200, pair(2)));
  const refreshed = await checkSession(world, cookie);
  expect(refreshed.status).toBe(200);
  expect(hardenedCookies(await signOut(world, hardenedCookies(refreshed)))).toBe(
    NAMES.map((name) => `${name}=`).join('; '),
  );
  expect(world.upstream.calls).toEqual([ME, REFRESH, ME, LOGOUT]);
});
