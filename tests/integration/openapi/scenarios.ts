/** Makes the gateway give each of its documented answers at least once. */

import type { Environment } from '../../../src/gateway/settings/environment-reader.ts';
import { REFRESH_ONLY, SIGNED_IN, type World } from '../../support/world.ts';
import { CALLS, type Call } from './calls.ts';
import {
  OWN_ERRORS,
  RETRY_LATER,
  raw,
  request,
  withEveryPlaceTaken,
  withNoPlaceForARefresh,
} from './own-errors.ts';

export interface Scenario {
  readonly operation: string;
  /** The key under which the document has the answer. */
  readonly status: string;
  readonly what: string;
  readonly environment?: Environment;
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether the answer is an error of the gateway's own, and no upstream's. */
  readonly isOwn: boolean;
  readonly send: (world: World) => Promise<Response>;
}

/** Sign-in takes it for a token pair, and the others for what they are to pass on. */
const SUCCESS = { access_token: 'access-2', refresh_token: 'refresh-2' };

function ownErrors(call: Call): Scenario[] {
  return call.statuses.flatMap((status) => {
    const error = OWN_ERRORS[status];
    if (!error) return [];
    const { send, ...rest } = error;
    return [{ ...rest, operation: call.operation, status, isOwn: true, send: (world) => send(world, call) }];
  });
}

/** An answer that follows from what the upstream says to the call, and to a refresh if one is needed. */
function answered(
  call: Call,
  [status, what]: readonly [status: string, what: string],
  answer: () => Response,
  refreshed: () => Response | Promise<Response> = () => Response.json(SUCCESS),
): Scenario {
  const send = (world: World) => {
    world.upstream
      .on('POST /oauth/token', () => Response.json({ access_token: 'identity' }))
      .on('POST /v1/auth/refresh', refreshed);
    if (call.upstream) world.upstream.on(call.upstream, answer);
    return request(world, call);
  };
  return {
    operation: call.operation,
    status,
    what,
    isOwn: !call.relays && status !== call.statuses[0],
    send,
  };
}

function html(status: number): Response {
  return new Response('<p>', { status, headers: { 'content-type': 'text/html' } });
}

function limited(status: number): Response {
  const headers = {
    'content-type': 'text/html',
    'retry-after': '9',
    ratelimit: 'x',
    'x-ratelimit-limit': '1',
  };
  return new Response('<p>', { status, headers });
}

/** Where the upstream's answers are passed on, its errors too may have any form; elsewhere only the status is. */
function upstreamErrors(call: Call): Scenario[] {
  const passedOn = call.relays ? Object.keys(OWN_ERRORS) : ['429', '503'];
  const statuses = call.statuses.filter((status) => passedOn.includes(status));
  return [
    ...statuses.map((status) =>
      answered(call, [status, `when the upstream says ${status}`], () => limited(Number(status))),
    ),
    ...(call.statuses.includes('default')
      ? [answered(call, ['default', 'when the upstream says 418'], () => limited(418))]
      : []),
  ];
}

function refreshes(call: Call): Scenario[] {
  if (!call.hasSession) return [];
  let calls = 0;
  const onceExpired = () => (calls++ ? Response.json(SUCCESS) : html(401));
  const late = answered(
    call,
    ['401', 'when the refresh is late'],
    () => html(401),
    () => new Promise(() => {}),
  );
  const rejected = answered(
    call,
    ['401', 'when the refresh is refused'],
    () => html(401),
    () => html(400),
  );
  return [
    answered(call, [call.statuses[0] ?? '', 'after a refresh'], onceExpired),
    { ...late, environment: { TIMEOUT_SIGN_IN_MS: '50' } },
    { ...rejected, isOwn: true },
    {
      ...late,
      what: 'when there is no place for the refresh',
      headers: RETRY_LATER,
      send: (world) => {
        if (call.upstream) world.upstream.on(call.upstream, () => html(401));
        return withNoPlaceForARefresh(world, call, SIGNED_IN);
      },
    },
    {
      ...late,
      status: '502',
      what: 'when there is no place for the refresh',
      headers: RETRY_LATER,
      isOwn: true,
      send: (world) => withNoPlaceForARefresh(world, call, REFRESH_ONLY),
    },
  ];
}

function invalidRequests(call: Call): Scenario[] {
  const invalid = { operation: call.operation, status: '400', isOwn: true };
  const refusesBody = call.path.startsWith('/api/upstream') && !call.hasBody;
  const takesKey = call.path.startsWith('/api/upstream') || call.operation.endsWith('generate');
  const json = JSON.stringify(call.options?.json ?? '');
  const head = `HTTP/1.1\r\nHost: x\r\nIdempotency-Key: \x7f\r\nContent-Type: application/json\r\nContent-Length: ${json.length}`;
  return [
    ...(takesKey
      ? [
          {
            ...invalid,
            what: 'with a control character',
            send: (world: World) => raw(world, call, head, json),
          },
        ]
      : []),
    ...(refusesBody
      ? [
          {
            ...invalid,
            what: 'with a body',
            send: (world: World) => raw(world, call, 'HTTP/1.1\r\nHost: x\r\nContent-Length: 2', '{}'),
          },
        ]
      : []),
    ...(call.options?.json
      ? [{ ...invalid, what: 'with no JSON', send: (world: World) => request(world, call, { body: '{' }) }]
      : []),
  ];
}

/** Signing out is never refused. */
function signOutWithEveryPlaceTaken(call: Call): Scenario {
  return {
    operation: call.operation,
    status: '200',
    what: 'with every place taken',
    isOwn: false,
    send: (world) => withEveryPlaceTaken(world, call),
  };
}

export const SCENARIOS: readonly Scenario[] = CALLS.flatMap((call) => [
  answered(call, [call.statuses[0] ?? '', 'when all is well'], () => Response.json(SUCCESS)),
  ...ownErrors(call),
  ...upstreamErrors(call),
  ...refreshes(call),
  ...invalidRequests(call),
  ...(call.path === '/api/auth/logout' ? [signOutWithEveryPlaceTaken(call)] : []),
]);
