/** What the routes of the sandbox's upstream API share: methods, the wrapper of answers, the caller's account. */

import type { Account } from './account.ts';
import { ApiError } from './api-error.ts';

type Handler<R extends Request> = (request: R) => Response | Promise<Response>;

/** The account whose access token the request bears; throws 401 without a valid one. */
export type RequireAccount = (request: Request) => Account;

/**
 * One handler for a path. Bun's own table of methods lets an unknown method fall through to the 404; GET
 * answers HEAD too.
 */
export function methods<R extends Request>(
  handlers: Partial<Record<Bun.Serve.HTTPMethod, Handler<R>>>,
): Handler<R> {
  const byMethod = new Map<string, Handler<R>>(Object.entries(handlers));
  if (handlers.GET) byMethod.set('HEAD', handlers.GET);
  const allow = [...byMethod.keys()].join(', ');
  return (request) => {
    const handle = byMethod.get(request.method);
    if (!handle) throw new ApiError(405, `${request.method} is not allowed here`, { Allow: allow });
    return handle(request);
  };
}

/** `{"data":...}`, as every answer but a token pair and audio is sent. */
export function dataResponse(data: unknown): Response {
  return Response.json({ data }, { headers: { 'Cache-Control': 'no-store' } });
}
