/** Parses the fields of a JSON or URL-encoded request body. */

import { isUtf8 } from 'node:buffer';
import { GatewayError } from './errors.ts';
import { isTooComplex } from './json-shape.ts';

const MAX_FORM_FIELDS = 1000;

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
