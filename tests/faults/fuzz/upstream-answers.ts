/** What the recording upstream and identity provider answer: the tokens of a call say it, so no state is kept. */

import { gzipSync } from 'node:zlib';
import type { Call } from './call-reader.ts';
import { richResponse } from './grammar/upstream-responses.ts';
import type { HeaderLine } from './header-lines.ts';

export const BASE_PATH = '/base';

export type UpstreamResponse =
  | { readonly bytes: Buffer; readonly status: number; readonly headers: readonly HeaderLine[] }
  | { readonly dies: 'before' | 'within' };

/** Every token starts so; none may ever reach a browser outside of a cookie. */
export const TOKEN_PREFIXES = ['acc.m', 'ref.m', 'idt.m'];
/** Every body of an upstream's error starts so: it is what a passed-through error is known by. */
export const UPSTREAM_BODY = '{"upstream":';

const MARKER = /m[0-9a-z]{6}x[0-9a-f]{8}/;
const TOKEN = /(acc|ref|code|idt)\.(m[0-9a-z]{6}x[0-9a-f]{8})\.(\w+)/;

export function answerTo(call: Call): UpstreamResponse {
  const path = call.target.slice(BASE_PATH.length);
  if (call.target.startsWith('/idp/')) return identityToken(call);
  if (path === '/v1/auth/idp' || path === '/v1/auth/refresh') return tokenPair(call);
  const authorization = call.headers.get('authorization');
  // Without a token there is only the path to tell what is wanted.
  if (authorization === undefined) return resource(call, MARKER.exec(path)?.[0] ?? '', 'rich');
  const [, , marker = '', flavour = 'ok'] = TOKEN.exec(authorization) ?? [];
  return resource(call, marker, flavour);
}

function identityToken({ body }: Call): UpstreamResponse {
  const [, , marker = '', flavour = ''] = TOKEN.exec(body) ?? [];
  if (flavour === 'no') return json(400, { error: 'invalid_grant' });
  if (flavour === '503') return json(503, {});
  if (flavour === 'bad') return json(200, { access_token: 'a\r\nb' });
  if (flavour === 'list') return json(200, [1]);
  if (flavour === 'reset') return { dies: 'before' };
  return json(200, { access_token: `idt.${marker}.${flavour}` });
}

function tokenPair({ body }: Call): UpstreamResponse {
  const [, , marker = '', flavour = ''] = TOKEN.exec(body) ?? [];
  const pair = { access_token: `acc.${marker}.ok`, refresh_token: `ref.${marker}.ok` };
  switch (flavour) {
    case 'no':
    case 'refused':
      return json(401, { error: { message: 'no' } });
    case 'bad':
      return json(200, { ...pair, refresh_token: '' });
    case 'list':
      return json(200, [pair]);
    case 'crlf':
      return json(200, { ...pair, access_token: `${pair.access_token}\r\nSet-Cookie: a=b` });
    case 'semi':
      return json(200, { ...pair, access_token: `${pair.access_token};,"%\\ok`, expires_in: '12.7' });
    case 'big':
      return json(200, { ...pair, refresh_token: `${pair.refresh_token}${'b'.repeat(5000)}` });
    case 'late':
      return json(200, { ...pair, expires_in: -1e308 });
    case 'again':
      return json(200, { ...pair, access_token: `acc.${marker}.401`, expires_in: 1e308 });
    case 'data':
      return json(200, { data: pair });
    case 'reset':
      return { dies: 'before' };
    default:
      return json(200, { ...pair, expires_in: 900 });
  }
}

function resource(call: Call, marker: string, flavour: string): UpstreamResponse {
  const echo = { upstream: marker, error: { message: `${marker} \u0000<b>` } };
  switch (flavour) {
    case '401':
    case '404':
    case '409':
    case '503':
      return json(Number(flavour), echo, call.method);
    case '302':
      return answer(302, ['Location: ../../v1/x?a=b', 'Content-Length: 0'], '', call.method);
    case '204':
    case '304':
      return answer(Number(flavour), ['ETag: "a"'], '', call.method);
    case 'rich': {
      const { status, lines, hasBody } = richResponse(marker, call.headers.get('host') ?? '');
      const body = hasBody ? JSON.stringify(echo) : '';
      const length = hasBody ? [`Content-Length: ${body.length}`] : [];
      return answer(status, [...lines, ...length], body, call.method);
    }
    case 'long':
      return json(200, { upstream: marker, filling: 'f'.repeat(100_000) }, call.method);
    case 'gzip': {
      const packed = gzipSync(JSON.stringify(echo)).toString('latin1');
      return answer(200, ['Content-Encoding: gzip', `Content-Length: ${packed.length}`], packed, call.method);
    }
    case 'odd':
      return answer(
        200,
        [
          'Set-Cookie: a=\x80b',
          'Access-Control-Allow-Origin: *',
          'X-Generation-Id: \xff',
          'Content-Type: \xe9',
          'Content-Length: 0',
        ],
        '',
        call.method,
      );
    case 'reset':
      return { dies: 'before' };
    case 'dies':
      return { dies: 'within' };
    default:
      return json(200, echo, call.method);
  }
}

function json(status: number, body: unknown, method = 'POST'): UpstreamResponse {
  const text = JSON.stringify(body);
  return answer(
    status,
    ['Content-Type: application/json', `Content-Length: ${Buffer.byteLength(text)}`],
    text,
    method,
  );
}

function answer(status: number, lines: readonly string[], body: string, method: string): UpstreamResponse {
  const head = `HTTP/1.1 ${status} Said\r\n${lines.join('\r\n')}\r\n\r\n`;
  const headers = lines.map((line): HeaderLine => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
  });
  return { bytes: Buffer.from(method === 'HEAD' ? head : head + body, 'latin1'), status, headers };
}
