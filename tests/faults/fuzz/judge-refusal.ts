/** Judges whether the gateway refused what it must refuse by itself. */

import type { Answer } from './answer-reader.ts';
import { hasForbiddenPath, hasTwinCookies, isProxied, isPublic, type ReadRequest } from './request-reader.ts';

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']);

/** For requests from an allowed origin. That they caused no call is judged with the calls. */
export function problemWithRefusal({ status, body }: Answer, request: ReadRequest): string | undefined {
  if (!METHODS.has(request.method)) return undefined;
  if (hasForbiddenPath(request)) return status === 404 ? undefined : `${status} for a path that must be 404`;
  if (status >= 400 && status < 500) return undefined;
  if (isReadWithBody(request)) return `${status} for a ${request.method} with a body`;
  if (!hasTwinCookies(request)) return undefined;
  const isAnonymous = isSessionCheck(request) && (body === '{"authenticated":false}' || body === '');
  return needsSession(request) && !isAnonymous ? `${status} for two cookies of one session name` : undefined;
}

function isReadWithBody(request: ReadRequest): boolean {
  return request.hasBody && ['GET', 'HEAD'].includes(request.method) && isProxied(request);
}

function isSessionCheck({ target }: ReadRequest): boolean {
  return target === '/api/auth/session';
}

function needsSession(request: ReadRequest): boolean {
  return isProxied(request)
    ? !isPublic(request)
    : isSessionCheck(request) || /^\/api\/music\/(?:models|generate)$/.test(request.target);
}
