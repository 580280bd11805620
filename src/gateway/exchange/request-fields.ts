/** Reads the fields of a JSON or URL-encoded request body. */

import { isUtf8 } from 'node:buffer';
import type { TObject } from '@sinclair/typebox';
import type { RequestBodies } from '../admission/request-bodies.ts';
import type { SessionUse } from '../admission/session-limit.ts';
import { GatewayError } from '../http/errors.ts';
import { readBody } from './request-body.ts';

const MAX_FORM_FIELDS = 1000;
const MAX_LEVELS = 64;
const MAX_BRACKETS = 1000;
const MAX_COMMAS = 1000;

const QUOTE = '"'.charCodeAt(0);
const BACKSLASH = '\\'.charCodeAt(0);
const COMMA = ','.charCodeAt(0);
const LEFT_BRACKET = '['.charCodeAt(0);
const RIGHT_BRACKET = ']'.charCodeAt(0);
const LEFT_BRACE = '{'.charCodeAt(0);
const RIGHT_BRACE = '}'.charCodeAt(0);

/**
 * Returns each field that the schema names, undefined when it is absent, without checking it; null when the body has no
 * fields or another content type.
 *
 * @throws GatewayError as {@link readBody} and {@link parseFields} do
 */
export async function readFields(
  request: Request,
  bodies: RequestBodies,
  { properties }: TObject,
  use?: SessionUse,
): Promise<Readonly<Record<string, unknown>> | null> {
  using body = await readBody(request, bodies, use);
  const fields = parseFields(request.headers.get('content-type'), body.bytes);
  if (typeof fields !== 'object' || fields === null || Array.isArray(fields)) return null;
  const given = new Map<string, unknown>(Object.entries(fields));
  // The other fields would stay in memory until the request has ended.
  return Object.fromEntries(Object.keys(properties).map((name) => [name, given.get(name)]));
}

/**
 * Returns the parsed body; null when it has another content type.
 *
 * @throws GatewayError 400 when the body is malformed, or when parsing it would cost far more than reading it
 */
export function parseFields(contentType: string | null, body: Buffer): unknown {
  const mediaType = contentType?.split(';')[0]?.trim().toLowerCase();
  if (mediaType === 'application/x-www-form-urlencoded') return parseForm(body);
  if (mediaType === 'application/json') return parseJson(body);
  return null;
}

function parseJson(body: Buffer): unknown {
  // This check comes first because decoding invalid bytes takes far longer.
  if (!isUtf8(body)) throw new GatewayError(400, 'bodyMalformed');
  if (isTooComplex(body)) throw new GatewayError(400, 'bodyTooComplex');
  try {
    // TextDecoder skips a byte order mark.
    return JSON.parse(new TextDecoder().decode(body));
  } catch (cause) {
    throw new GatewayError(400, 'bodyMalformed', { cause });
  }
}

function parseForm(body: Buffer): unknown {
  if (!isUtf8(body)) throw new GatewayError(400, 'requestInvalid');
  const form = body.toString();
  if (form.split('&', MAX_FORM_FIELDS + 1).length > MAX_FORM_FIELDS) {
    throw new GatewayError(400, 'bodyTooComplex');
  }
  return Object.fromEntries(new URLSearchParams(form));
}

/**
 * Whether parsing would cost far more than reading, because a parser allocates for each array, object and value: the JSON
 * is nested deeper than 64 levels, or has more than 1,000 opening brackets and braces or more than 1,000 commas. Those
 * inside strings do not count. Malformed JSON counts like valid JSON up to its first error, where the parser stops.
 *
 * @param json UTF-8, in which no byte of a multi-byte character equals an ASCII character
 */
function isTooComplex(json: Uint8Array): boolean {
  let levels = 0;
  let brackets = 0;
  let commas = 0;
  for (let index = 0; index < json.length; index++) {
    switch (json[index]) {
      case QUOTE:
        index = endOfString(json, index + 1);
        break;
      case COMMA:
        if (++commas > MAX_COMMAS) return true;
        break;
      case LEFT_BRACKET:
      case LEFT_BRACE:
        if (++brackets > MAX_BRACKETS || ++levels > MAX_LEVELS) return true;
        break;
      case RIGHT_BRACKET:
      case RIGHT_BRACE:
        levels--;
    }
  }
  return false;
}

/** The index of the closing quote. A call of `indexOf()` for each of a million short strings would cost far more. */
function endOfString(json: Uint8Array, start: number): number {
  let index = start;
  while (index < json.length && json[index] !== QUOTE) index += json[index] === BACKSLASH ? 2 : 1;
  return index;
}
