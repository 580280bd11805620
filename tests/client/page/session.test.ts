import { describe, expect, it } from 'bun:test';
import type { SessionCheck } from '../../../src/client/gateway-client.ts';
import { lost, rejection, respond, stubGateway } from './gateway-stub.ts';

describe('the session', () => {
  const ADA = { name: 'Ada' };
  const ODD = { authenticated: true, ...ADA };
  it.each<[string, Response, SessionCheck<unknown>]>([
    ['none', Response.json({ authenticated: false }), { authenticated: false }],
    ['a profile in data', Response.json({ data: ADA }), { authenticated: true, profile: ADA }],
    ['a profile with a field of that name', Response.json(ODD), { authenticated: true, profile: ODD }],
    ['a list', Response.json(['Ada']), { authenticated: true, profile: ['Ada'] }],
    ['null', Response.json(null), { authenticated: true, profile: null }],
    ['no profile', Response.json({ authenticated: true }), { authenticated: true }],
    ['an empty response', new Response(null, { status: 204 }), { authenticated: true }],
    ['a 401', new Response(null, { status: 401 }), { authenticated: false }],
  ])('is asked for with the cookies, never of a cache, and known after %s', async (_, response, session) => {
    const { client, sent } = stubGateway(() => response);
    const check = await client.session();
    expect(check).toStrictEqual(session);
    const { authenticated, profile } = check;
    expect([authenticated, profile]).toEqual([session.authenticated, session.profile]);
    const init = { cache: 'no-store', credentials: 'include' };
    expect(sent).toMatchObject([{ call: 'GET /api/auth/session', init }]);
  });

  it('is unknown, and has not ended, after a refresh that failed', async () => {
    const headers = { 'proxy-status': 'music-gateway; error=http_response_timeout' };
    const error = { status: 401, sessionHasEnded: false, retryIsSafe: true };
    expect(await rejection(stubGateway(respond(401, headers)).client.session())).toMatchObject(error);
  });
});

describe('onRefresh', () => {
  it.each([
    ['cdn-cache;desc=HIT, refresh', 200, 1],
    ['refresh;dur=3, cdn;dur=1', 402, 1],
    ['refresh , refresh', 200, 1],
    ['refreshed', 200, 0],
    ['pre-refresh', 200, 0],
    ['db;desc=refresh', 200, 0],
    ['', 402, 0],
  ])('is called after the Server-Timing %j of a %d: %d times', async (serverTiming, status, times) => {
    let refreshes = 0;
    const response = respond(status, { 'server-timing': serverTiming }, '[]');
    const { client } = stubGateway(response, { onRefresh: () => refreshes++ });
    await client.models().catch(() => {});
    expect(refreshes).toBe(times);
  });
});

describe('onSessionChange', () => {
  const PROVIDER = {
    issuer: 'i',
    authorizationEndpoint: 'https://id.test/',
    clientId: 'c',
    redirectUri: 'r',
  };

  /** A tab of a page, which notes what it learns; with a gateway of its own address. */
  function openTab(baseUrl: string, response = respond(200)) {
    const heard: string[] = [];
    const stored = new Map<string, string>();
    const waiting = new Set<() => void>();
    const storage = {
      getItem: (key: string) => stored.get(key) ?? null,
      setItem: (key: string, value: string) => void stored.set(key, value),
      removeItem: (key: string) => void stored.delete(key),
    };
    const onSessionChange = () => {
      heard.push('change');
      for (const resolve of waiting) resolve();
    };
    const { client } = stubGateway(response, { baseUrl, storage, onSessionChange });
    const learns = () => new Promise<void>((resolve) => waiting.add(resolve));
    return { client, heard, learns, storage };
  }

  it('is called in the other tabs of the same gateway after a sign-in and a sign-out, not after a failure', async () => {
    const [first, second, elsewhere] = [
      openTab('http://a.test'),
      openTab('http://a.test/'),
      openTab('http://b.test'),
    ];
    const failing = openTab('http://a.test', lost);
    const mute = stubGateway(respond(200), { baseUrl: 'http://a.test' });
    await rejection(failing.client.signOut());
    const signedIn = second.learns();
    const address = new URL(await first.client.beginSignIn(PROVIDER));
    await first.client.completeSignIn(`http://page.test/?code=c&state=${address.searchParams.get('state')}`);
    await signedIn;
    expect([first, second, elsewhere].map(({ heard }) => heard.length)).toEqual([0, 1, 0]);
    const signedOut = Promise.all([first.learns(), second.learns()]);
    await mute.client.signOut();
    await signedOut;
    expect([first, second, elsewhere].map(({ heard }) => heard.length)).toEqual([1, 2, 0]);
  });
});
