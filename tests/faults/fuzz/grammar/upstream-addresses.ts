/** Addresses that the upstream may write: its own in many spellings, relative ones, other hosts. */

import type { Random } from '../random.ts';

const OTHERS = [
  ...['https://cdn.test/a', 'http://evil.test/base/v1/x', 'https://cdn.test/?u=/base/v1/', '//cdn.test/a'],
  ...['https://cdn.test/a,b;c', 'HTTPS://CDN.test/A', 'https://cdn.test', 'http://127.0.0.1/base/v1/x'],
];
const RELATIVE = [
  ...[
    'next',
    './next',
    '../next',
    '../../v1/x?a=b',
    '?page=2',
    '#part',
    '/base/v1/x?a=b#c',
    '/base/v1/',
    '/v1/x',
  ],
  ...[
    '/base',
    '/',
    '/base/v10/x',
    '/base/v1/../../x',
    '/base/v1/%2e%2e/%2e%2e/x',
    '/base/v1/a%20b',
    './../v1/x',
  ],
  ...['/base/v1/auth/refresh', '/base/v1/x;a=b', '/base/v1/;x/y', '/base/v1/a,b', '/BASE/v1/x', '/base/v1'],
  ...['/base/v1//x', '/base/v1/a%2fb', 'x;y=1', '../../../../base/v1/z'],
];
const OWN_PATHS = ['/base/v1/x?a=b#c', '/base/v1/x', '/base/v1/', '/base/v1', '/base/v2/x', '/v1/x', '/', ''];

/** `host` is the upstream's, with its port. Has no characters that a header or a link could not carry. */
export function address(random: Random, host: string): string {
  const [, port = ''] = host.split(':');
  const path = random.pick(OWN_PATHS);
  return random.make<string>(
    () => `http://${host}${path}`,
    () => `http://${host}${path}`,
    () => random.pick(RELATIVE),
    () => random.pick(RELATIVE),
    () => random.pick(OTHERS),
    () =>
      random.pick([
        ...[`//${host}${path}`, `HTTP://${host}${path}`, `https://${host}${path}`, `http:\\\\${host}${path}`],
        ...[`http://u:p@${host}${path}`, `http://127.1:${port}${path}`, `http://2130706433:${port}${path}`],
        ...[`http:${path}`, `http:///${host}${path}`, `/\\${host}${path}`, `http://0x7f.1:${port}${path}`],
        ...[`http://${host}:80`, 'http://[', `http://${host}.evil.test/`],
      ]),
  );
}
