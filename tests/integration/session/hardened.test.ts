/**
 * What RFC 10017 asks of a backend for frontend beyond the contract, of a gateway in production with all settings that
 * harden it. Each in all its cases: SECURITY.md. That a certified provider takes the assertion: process/check-config.
 *
 * @see RFC 10017 section 6.1.3
 */

import { expect, it } from 'bun:test';
import { decodeProtectedHeader } from 'jose';
import { clientKeyPair } from '../../support/client-keys.ts';
import { readDocument, section } from '../../support/documents.ts';
import * as calls from '../../support/session-calls.ts';
import { SIGNED_IN, startWorld } from '../../support/world.ts';

const { checkSession, LOGOUT, reply, scriptSignIn, sentBack, signIn, signOut, TOKEN } = calls;
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

/** The cookies without their values; the contract has their lifetimes. */
function attributes(response: Response): string[] {
  const lines = response.headers.getSetCookie();
  return lines.map((line) => line.replace(/=[^;]*/, '').replace(/Max-Age=\d+/, 'Max-Age'));
}

it('the gateway authenticates with its key, and encrypts cookies that have all attributes and a prefix', async () => {
  await using world = startWorld(Object.fromEntries(SETTINGS));
  scriptSignIn(world);
  world.upstream.on(LOGOUT, reply(204));
  const signedIn = await signIn(world);
  const form = new URLSearchParams(world.upstream.last(TOKEN).body);
  expect(decodeProtectedHeader(form.get('client_assertion') ?? '')).toMatchObject({ alg: 'ES256' });
  const hardened = NAMES.map((name) => `${name}; Path=/; Max-Age; Secure; HttpOnly; SameSite=Strict`);
  expect(attributes(signedIn)).toEqual(hardened);
  for (const line of signedIn.headers.getSetCookie())
    expect(decodeProtectedHeader(Bun.Cookie.parse(line).value)).toMatchObject({ enc: 'A256GCM' });

  const cookie = sentBack(signedIn);
  world.upstream.received.length = 0;
  // Neither a token nor another name is a session.
  for (const each of [SIGNED_IN.replaceAll('svc', `${PREFIX}svc`), cookie.replaceAll(PREFIX, '')])
    expect(await (await checkSession(world, each)).json()).toEqual({ authenticated: false });
  const ended = await signOut(world, cookie);
  expect(world.upstream.calls).toEqual([LOGOUT]);
  expect(world.upstream.last(LOGOUT).headers.get('authorization')).toBe('Bearer access-1');
  expect([attributes(ended), sentBack(ended)]).toEqual([
    hardened,
    NAMES.map((name) => `${name}=`).join('; '),
  ]);
});
