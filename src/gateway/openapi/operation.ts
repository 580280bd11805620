/** An operation of the OpenAPI document, and the session that it requires. */

import type { TSchema } from '@sinclair/typebox';
import type { DocumentDecoration } from 'elysia';
import { type Responses, withoutContent } from './responses.ts';

type References = Readonly<Record<string, { readonly $ref: string }>>;

export interface Operation<Described = Responses | References> {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly detail: DocumentDecoration & { readonly responses: Described };
}

const description = 'With `COOKIE_PREFIX` the name begins with that prefix.';

export const SECURITY_SCHEMES = {
  accessToken: { type: 'apiKey', in: 'cookie', name: 'svc_music_access', description },
  refreshToken: { type: 'apiKey', in: 'cookie', name: 'svc_music_refresh', description },
} as const;

/** Either cookie is enough: a browser has only the refresh cookie once the access cookie has expired. */
export const NEEDS_SESSION = [
  { accessToken: [], refreshToken: [] },
  { accessToken: [] },
  { refreshToken: [] },
];
export const TAKES_SESSION = [{}, ...NEEDS_SESSION];

/** @param schema the one with which the route checks the body */
export function requiredBody(schema: TSchema, ...types: string[]) {
  return { content: Object.fromEntries(types.map((type) => [type, { schema }])), required: true };
}

/** Elysia serves HEAD wherever there is a GET. */
export function withHead(get: Operation<Responses>): Operation[] {
  const { operationId, summary, responses } = get.detail;
  const detail = {
    ...get.detail,
    operationId: `${operationId}Head`,
    summary: `${summary} (head only)`,
    responses: withoutContent(responses),
  };
  return [get, { ...get, method: 'HEAD', detail }];
}
