import { describe, expect, it } from 'bun:test';
import type { SessionCheck } from '../../../src/client/gateway-client.ts';
import { eventually } from '../../support/eventually.ts';
import { fakeTime, settle } from '../fake-time.ts';
import {
  lost,
  openStorage,
  PROVIDER,
  type Respond,
  rejection,
  respond,
  stubGateway,
} from './gateway-stub.ts';

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

  it.each<[string, Respond]>([
    ['no response', () => new Promise(() => {})],
    ['no end of the body', respond(200, {}, new ReadableStream())],
  ])('is unknown after a minute with %s, and the connection is closed', async (_, hang) => {
    const advance = fakeTime();
    const { client, sent } = stubGateway(hang);
    const check = client.session().catch((error: unknown) => error);
    const state = () => Promise.race([check, 'pending']);
    await settle();
    await advance(59_999);
    expect(await state()).toBe('pending');
    await advance(1);
    expect(await state()).toMatchObject({ name: 'GatewayRequestError', status: 0, retryIsSafe: true });
    expect(sent[0]?.init.signal?.aborted).toBe(true);
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
  it('is called in the other tabs of the same gateway after a sign-in and a sign-out, not after a failure', async () => {
    const heard = { first: 0, second: 0, elsewhere: 0, failing: 0 };
    const openTab = (name: keyof typeof heard, baseUrl: string, response = respond(200)) =>
      stubGateway(response, { baseUrl, storage: openStorage(), onSessionChange: () => heard[name]++ }).client;
    const first = openTab('first', 'http://a.test');
    openTab('second', 'http://a.test/');
    openTab('elsewhere', 'http://b.test');
    await rejection(openTab('failing', 'http://a.test', lost).signOut());
    const address = new URL(await first.beginSignIn(PROVIDER));
    await first.completeSignIn(`http://page.test/?code=c&state=${address.searchParams.get('state')}`);
    await eventually(() => heard.second, 'news of the sign-in');
    expect(heard).toEqual({ first: 0, second: 1, elsewhere: 0, failing: 1 });
    // By a tab that wants to hear of nothing itself.
    await stubGateway(respond(200), { baseUrl: 'http://a.test' }).client.signOut();
    await eventually(() => heard.first && heard.second === 2, 'news of the sign-out');
    expect(heard).toEqual({ first: 1, second: 2, elsewhere: 0, failing: 2 });
  });
});
