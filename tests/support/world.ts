/** A gateway on a real socket in front of a scripted upstream: what most integration tests need. */

import { expect } from 'bun:test';
import { Admission } from '../../src/gateway/admission/admission.ts';
import { createGateway } from '../../src/gateway/gateway.ts';
import type { Environment } from '../../src/gateway/settings/environment-reader.ts';
import { parseSettings, type Settings } from '../../src/gateway/settings/settings.ts';
import type { Metrics } from '../../src/gateway/telemetry/metrics.ts';
import { expectDocumented } from './openapi.ts';
import { recordLog } from './recorded-log.ts';
import { ScriptedUpstream } from './scripted-upstream.ts';

export const ORIGIN = 'http://studio.test';
/** Nothing listens there. */
export const CLOSED = 'http://127.0.0.1:1';
/** Every setting that is required. */
export const REQUIRED = {
  UPSTREAM_URL: CLOSED,
  IDP_URL: CLOSED,
  IDP_CLIENT_ID: 'studio',
  IDP_REDIRECT_URI: `${ORIGIN}/callback`,
  ALLOWED_ORIGINS: `${ORIGIN},http://other.studio.test:8080`,
};
/** Cookies of a session with both tokens, as a browser sends them. */
export const SIGNED_IN = 'svc_music_access=access-1; svc_music_refresh=refresh-1';
export const ACCESS_ONLY = 'svc_music_access=access-1';
export const REFRESH_ONLY = 'svc_music_refresh=refresh-1';

export interface RequestOptions extends Omit<BunFetchRequestInit, 'headers'> {
  /** The Cookie header; none when left out. */
  readonly cookie?: string;
  /** Null: no Origin header. */
  readonly origin?: string | null;
  readonly headers?: Record<string, string>;
  /** Sent as JSON, with POST. */
  readonly json?: unknown;
}

export type World = ReturnType<typeof startWorld>;

/** The settings of a gateway in this environment, which has what is required unless it is changed. */
export function testSettings(environment: Environment = {}, memoryLimitBytes?: number): Settings {
  const outcome = parseSettings({ ...REQUIRED, ...environment });
  if (!outcome.ok) throw new Error(outcome.problems.join('\n'));
  return { ...outcome.settings, ...(memoryLimitBytes && { memoryLimitBytes }) };
}

/**
 * Starts both; when the test ends they are stopped, and a call that was not scripted, or a secret in the log, fails it.
 *
 * @param memoryBytes what the gateway may use; by default the machine's memory
 */
export function startWorld(environment: Environment = {}, metrics?: Metrics, memoryBytes?: number) {
  const upstream = new ScriptedUpstream();
  const { logger, lines, line, warnings: log, secrets } = recordLog();
  const addresses = { UPSTREAM_URL: upstream.upstreamUrl, IDP_URL: upstream.identityProviderUrl };
  const settings = testSettings({ ...addresses, ...environment }, memoryBytes);
  const admission = new Admission(settings);
  const gateway = createGateway({ settings, logger, metrics, admission });
  gateway.listen({ port: 0, hostname: '127.0.0.1' });
  const port = gateway.server?.port ?? 0;
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    port,
    upstream,
    /** What the gateway counts, and a test can fill. */
    admission,
    /** What the gateway warned of in its log. */
    log,
    /** Every line of it, and a wait for one. */
    lines,
    line,
    /** Its response is compared with the OpenAPI document. */
    async request(path: string, options: RequestOptions = {}) {
      const response = await request(url + path, options);
      const method = options.method ?? (options.json === undefined ? 'GET' : 'POST');
      await expectDocumented(method, path, response);
      return response;
    },
    /** Resolves when every request has ended. */
    settled: () => gateway.exchanges.settled(),
    /** Ends every request, as a stop does that has waited for long enough. */
    endAll() {
      admission.watch.endAll();
      gateway.exchanges.endAll();
    },
    /** Resolves when a later request has been all the way: what the upstream sent before it, the gateway has taken. */
    async roundTrip() {
      upstream.on('GET /v1/round-trip', () => new Response());
      await request(`${url}/api/upstream/v1/round-trip`, { cookie: ACCESS_ONLY });
    },
    async [Symbol.asyncDispose]() {
      await gateway.stop(true);
      await upstream[Symbol.asyncDispose]();
      expect(secrets).toEqual([]);
    },
  };
}

/** From an allowed origin, unless another is given; redirects are not followed. */
export function request(url: string, { cookie, origin = ORIGIN, headers, json, ...init }: RequestOptions) {
  return fetch(url, {
    redirect: 'manual',
    ...(json === undefined ? {} : { method: 'POST', body: JSON.stringify(json) }),
    ...init,
    headers: {
      ...(origin === null ? {} : { origin }),
      ...(cookie === undefined ? {} : { cookie }),
      ...(json === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
  });
}

/** Asserts status and error envelope, and gives its message. */
export async function envelopeMessage(response: Response, status: number): Promise<string> {
  expect(response.status).toBe(status);
  const body = Object(await response.json());
  expect(body).toStrictEqual({ error: { message: expect.stringMatching(/./) } });
  return body.error.message;
}

/** The cookies that the response sets, as `name` to `value`. */
export function storedTokens(response: Response): Record<string, string> {
  const cookies = response.headers.getSetCookie().map((header) => Bun.Cookie.parse(header));
  return Object.fromEntries(cookies.map(({ name, value }) => [name, decodeURIComponent(value)]));
}

/** Asserts that the response clears both session cookies. */
export function expectCleared(response: Response): void {
  const cleared = '=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax';
  const expected = [`svc_music_access${cleared}`, `svc_music_refresh${cleared}`];
  expect(response.headers.getSetCookie()).toEqual(expected);
}
