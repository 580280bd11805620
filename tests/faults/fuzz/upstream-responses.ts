/** How the recording upstream and identity provider respond: the tokens of a call say it, so no state is kept. */

import { gzipSync } from 'node:zlib';
import { type HeaderLine, headerLine } from '../../support/raw-http.ts';
import type { Call } from './call-parser.ts';
import type { RichResponse } from './grammar/rich-responses.ts';

export const BASE_PATH = '/base';

export type UpstreamResponse =
  | { readonly bytes: Buffer; readonly status: number; readonly headers: readonly HeaderLine[] }
  | { readonly dies: 'before' | 'within' };

/** Every token starts so; none may ever reach a browser outside of a cookie. */
export const TOKEN_PREFIXES = ['acc.m', 'ref.m', 'idt.m'];
/** The body of every error of the upstream starts so, which identifies an error that the gateway passes on. */
export const UPSTREAM_BODY = '{"upstream":';

const MARKER = /m\d{12}m/;
const TOKEN = /(?:acc|ref|code|idt)\.(m\d{12}m)\.(\w+)/;
const DIES_BEFORE: UpstreamResponse = { dies: 'before' };

/** @param richOf the response that was generated with the request of that marker */
export function responseTo(
  call: Call,
  richOf: (marker: string) => RichResponse | undefined,
): UpstreamResponse {
  const path = call.target.slice(BASE_PATH.length);
  const [, marker = '', flavour = ''] = TOKEN.exec(call.body) ?? [];
  if (call.target.startsWith('/idp/')) return identityToken(marker, flavour);
  if (path === '/v1/auth/idp' || path === '/v1/auth/refresh') return tokenPair(marker, flavour);
  const authorization = call.headers.get('authorization');
  // Without a token only the path says which response is wanted.
  if (authorization === undefined) return resource(call, MARKER.exec(path)?.[0] ?? '', 'rich', richOf);
  const [, owner = '', wanted = 'ok'] = TOKEN.exec(authorization) ?? [];
  return resource(call, owner, wanted, richOf);
}

function identityToken(marker: string, flavour: string): UpstreamResponse {
  const responses: Readonly<Record<string, UpstreamResponse>> = {
    no: json(400, { error: 'invalid_grant' }),
    503: json(503, {}),
    bad: json(200, { access_token: 'a\r\nb' }),
    list: json(200, [1]),
    reset: DIES_BEFORE,
  };
  return responses[flavour] ?? json(200, { access_token: `idt.${marker}.${flavour}` });
}

function tokenPair(marker: string, flavour: string): UpstreamResponse {
  if (flavour === 'reset') return DIES_BEFORE;
  if (flavour === 'no' || flavour === 'refused') return json(401, { error: { message: 'no' } });
  const access = `acc.${marker}.ok`;
  const pair = { access_token: access, refresh_token: `ref.${marker}.ok` };
  const bodies: Readonly<Record<string, unknown>> = {
    bad: { ...pair, refresh_token: '' },
    list: [pair],
    crlf: { ...pair, access_token: `${access}\r\nSet-Cookie: a=b` },
    semi: { ...pair, access_token: `${access};,"%\\ok`, expires_in: '12.7' },
    big: { ...pair, refresh_token: `${pair.refresh_token}${'b'.repeat(5000)}` },
    late: { ...pair, expires_in: -1e308 },
    again: { ...pair, access_token: `acc.${marker}.401`, expires_in: 1e308 },
    data: { data: pair },
  };
  return json(200, bodies[flavour] ?? { ...pair, expires_in: 900 });
}

function resource(
  { method, headers }: Call,
  marker: string,
  flavour: string,
  richOf: (marker: string) => RichResponse | undefined,
): UpstreamResponse {
  const echo = { upstream: marker, error: { message: `${marker} \u0000<b>` } };
  switch (flavour) {
    case '401':
    case '404':
    case '409':
    case '503':
      return json(Number(flavour), echo, method);
    case '302':
      return response(302, ['Location: ../../v1/x?a=b', 'Content-Length: 0'], '', method);
    case '204':
    case '304':
      return response(Number(flavour), ['ETag: "a"'], '', method);
    case 'rich': {
      const rich = richOf(marker);
      return rich
        ? richly(rich, headers.get('host') ?? '', JSON.stringify(echo), method)
        : json(200, echo, method);
    }
    case 'long':
      return json(200, { upstream: marker, filling: 'f'.repeat(100_000) }, method);
    case 'gzip': {
      const packed = gzipSync(JSON.stringify(echo)).toString('latin1');
      return response(200, ['Content-Encoding: gzip', `Content-Length: ${packed.length}`], packed, method);
    }
    case 'odd': {
      const odd = ['Set-Cookie: a=\x80b', 'Access-Control-Allow-Origin: *', 'X-Generation-Id: \xff'];
      return response(200, [...odd, 'Content-Type: \xe9', 'Content-Length: 0'], '', method);
    }
    case 'reset':
      return DIES_BEFORE;
    case 'dies':
      return { dies: 'within' };
    default:
      return json(200, echo, method);
  }
}

function richly(
  { status, lines }: RichResponse,
  host: string,
  text: string,
  method: string,
): UpstreamResponse {
  const [, port = ''] = host.split(':');
  const own = lines.map((line) => line.replaceAll('{host}', host).replaceAll('{port}', port));
  if ([204, 205, 304].includes(status)) return response(status, own, '', method);
  return response(status, [...own, `Content-Length: ${text.length}`], text, method);
}

function json(status: number, body: unknown, method = 'POST'): UpstreamResponse {
  const text = JSON.stringify(body);
  const length = `Content-Length: ${Buffer.byteLength(text)}`;
  return response(status, ['Content-Type: application/json', length], text, method);
}

function response(status: number, lines: readonly string[], body: string, method: string): UpstreamResponse {
  const head = `HTTP/1.1 ${status} Said\r\n${lines.join('\r\n')}\r\n\r\n`;
  const bytes = Buffer.from(method === 'HEAD' ? head : head + body, 'latin1');
  return { bytes, status, headers: lines.map(headerLine) };
}
