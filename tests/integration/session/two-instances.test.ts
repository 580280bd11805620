import { expect, it } from 'bun:test';
import { messages } from '../../../src/gateway/http/messages.ts';
import { REDIS_SERVER, startRedis } from '../../support/redis.ts';
import { type RedisInstance, startTwo } from '../../support/redis-instance.ts';
import { describeWith } from '../../support/requirements.ts';
import { Rotation } from '../../support/rotating-upstream.ts';
import { ScriptedUpstream } from '../../support/scripted-upstream.ts';
import * as calls from '../../support/session-calls.ts';
import { envelopeMessage, request } from '../../support/world.ts';

const { cookies, LOGOUT, pair, REFRESH, reply } = calls;
const MODELS = 'GET /v1/models';

const CLEARED = ['svc_music_access', 'svc_music_refresh'].map(
  (name) => `${name}=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Lax`,
);

const ask = ({ url }: RedisInstance, path: string, cookie: string, method = 'GET') =>
  request(`${url}/api/${path}`, { method, cookie });

describeWith([REDIS_SERVER], 'two instances', () => {
  it.each<[order: string, sent: (typeof LOGOUT | typeof REFRESH)[]]>([
    ['before', [LOGOUT]],
    ['while', [REFRESH, LOGOUT]],
  ])(
    'keep the cookies of a sign-in that follows a sign-out at the other one, %s a slow call refreshes',
    async (order, sent) => {
      await using stack = new AsyncDisposableStack();
      const redis = stack.use(await startRedis());
      const upstream = stack.use(new ScriptedUpstream());
      new Rotation(upstream);
      const [one, two] = await startTwo(upstream.upstreamUrl, redis.url, {
        IDP_URL: upstream.identityProviderUrl,
      });
      for (const each of [one, two]) stack.use(each);
      const expired = Promise.withResolvers<Response>();
      const refreshed = Promise.withResolvers<Response>();
      // The access token of the session has expired, and its refresh token was never used.
      upstream.on(MODELS, () => expired.promise).on(REFRESH, () => refreshed.promise);
      upstream.on(LOGOUT, ({ body }) => reply(body.includes('refresh-1') ? 401 : 204)());
      const slow = ask(one, 'music/models', cookies(1));
      await upstream.arrived(MODELS);
      if (order === 'while') {
        expired.resolve(reply(401)());
        await upstream.arrived(REFRESH);
      }
      const signedOut = await ask(two, 'auth/logout', cookies(1), 'POST');
      expect(signedOut.headers.getSetCookie()).toEqual(CLEARED);
      calls.scriptSignIn({ upstream }, pair(7));
      const signedIn = await request(`${two.url}/api/auth/idp`, { json: calls.GRANT });
      expect(calls.sentBack(signedIn)).toBe(cookies(7));
      expired.resolve(reply(401)());
      refreshed.resolve(reply(200, pair(2))());
      const response = await slow;
      expect(response.headers.getSetCookie()).toEqual([]);
      expect(await envelopeMessage(response, 401)).toBe(messages.en.sessionEnded);
      const received = upstream.calls.filter((call) => call === REFRESH || call === LOGOUT);
      expect(received.slice(0, sent.length)).toEqual(sent);
    },
  );

  it('refresh once for uploads at both, of which each arrives once', async () => {
    await using stack = new AsyncDisposableStack();
    const redis = stack.use(await startRedis());
    const upstream = stack.use(new ScriptedUpstream());
    const { live } = new Rotation(upstream);
    const both = await startTwo(upstream.upstreamUrl, redis.url, { IDP_URL: upstream.identityProviderUrl });
    for (const each of both) stack.use(each);
    const upload = async ({ url }: RedisInstance, name: string) => {
      upstream.on(`PUT /v1/${name}`, ({ headers }) => {
        const isLive = live.has(headers.get('authorization')?.slice('Bearer '.length) ?? '');
        return reply(isLive ? 201 : 401)();
      });
      const options = { method: 'PUT', cookie: cookies(1), body: new Uint8Array(3_000_000) };
      const response = await request(`${url}/api/upstream/v1/${name}`, options);
      expect([response.status, calls.sentBack(response)]).toEqual([201, cookies(2)]);
      const arrived = upstream.received.filter(({ target }) => target === `/v1/${name}`);
      expect(arrived.map(({ bytes }) => bytes.length)).toEqual([3_000_000]);
    };
    const names = [0, 1, 2, 3, 4, 5].map((index) => `upload-${index}`);
    await Promise.all(both.flatMap((each, index) => names.map((name) => upload(each, `${name}-${index}`))));
    expect(calls.refreshes({ upstream })).toBe(1);
  });
});
