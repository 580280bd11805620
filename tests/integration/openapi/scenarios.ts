/** Brings every operation of the OpenAPI document to each of its responses. */

import { fill } from '../../support/long-calls.ts';
import type { World } from '../../support/world.ts';
import { type Call, callOf, PAIR, whenUpstream } from './calls.ts';
import type { DocumentedOperation } from './document.ts';
import {
  dependsOnUpstream,
  hasSession,
  OWN_ERRORS,
  RETRY_LATER,
  type Situation,
  withEveryPlaceTaken,
} from './own-errors.ts';

const always = () => true;
const never = () => false;
const isOwnText = ({ relays }: Call) => !relays;
const html = (status: number, headers = {}) =>
  new Response('<p>', { status, headers: { 'content-type': 'text/html', ...headers } });
const STEP_UP = 'Bearer error="insufficient_user_authentication", max_age="300"';
const LIMITS = { 'retry-after': '9', ratelimit: 'x', 'x-ratelimit-limit': '1' };

/** The upstream's own refusals: of relayed ones the body is passed on, of others the status. */
const REFUSALS = [400, 401, 403, 404, 408, 413, 418, 429, 502, 503].map(
  (status): Situation => ({
    what: `when the upstream says ${status}`,
    status: String(status),
    appliesTo: (call) =>
      dependsOnUpstream(call) &&
      (call.relays || [418, 429, 503].includes(status)) &&
      // Then the session has no profile, which is no refusal.
      !(status === 404 && call.path === '/api/auth/session'),
    isOwn: isOwnText,
    send: (world, call) => whenUpstream(world, call, () => html(status, LIMITS)),
  }),
);

const SITUATIONS: readonly Situation[] = [
  {
    what: 'when all is well',
    appliesTo: always,
    isOwn: never,
    send: (world, call) => whenUpstream(world, call, () => Response.json(PAIR)),
  },
  {
    what: 'after a refresh',
    appliesTo: hasSession,
    isOwn: never,
    send: (world, call) => {
      let calls = 0;
      return whenUpstream(world, call, () => (calls++ ? Response.json(PAIR) : html(401)));
    },
  },
  {
    what: 'with every place taken',
    appliesTo: ({ isSignOut }) => isSignOut,
    isOwn: never,
    send: withEveryPlaceTaken,
  },
  ...OWN_ERRORS.map((situation) => ({ ...situation, isOwn: always })),
  ...REFUSALS,
  {
    what: 'when the upstream asks for another sign-in',
    status: '401',
    appliesTo: (call) => call.hasSession || call.isPlayback,
    isOwn: isOwnText,
    headers: { 'www-authenticate': STEP_UP },
    send: (world, call) => whenUpstream(world, call, () => html(401, { 'www-authenticate': STEP_UP })),
  },
  {
    what: 'when the refresh is late',
    status: '401',
    appliesTo: hasSession,
    isOwn: isOwnText,
    environment: { TIMEOUT_SIGN_IN_MS: '1000' },
    send: (world, call) =>
      whenUpstream(world, call, () => html(401), { refreshed: () => new Promise(() => {}) }),
  },
  {
    what: 'when there is no place for the refresh',
    status: '401',
    appliesTo: hasSession,
    isOwn: isOwnText,
    headers: RETRY_LATER,
    send: (world, call) => {
      fill(world.admission.sessions);
      return whenUpstream(world, call, () => html(401));
    },
  },
];

/** Every situation of every operation, with the key that its response has in the document. */
export function scenariosOf(operations: ReadonlyMap<string, DocumentedOperation>) {
  const calls = Array.from(operations, ([operation, documented]) => callOf(operation, documented));
  return calls.flatMap((call) =>
    SITUATIONS.filter(({ appliesTo }) => appliesTo(call)).map((situation) => ({
      operation: call.operation,
      what: situation.what,
      status: keyOf(situation, call),
      environment: situation.environment,
      headers: situation.headers ?? {},
      isOwn: situation.isOwn(call),
      send: (world: World) => situation.send(world, call),
    })),
  );
}

function keyOf({ status, what }: Situation, { documented, isProxied }: Call): string {
  if (status === undefined) return isProxied ? '2XX' : '200';
  return what.startsWith('when the upstream says') && !documented.includes(status) ? 'default' : status;
}
