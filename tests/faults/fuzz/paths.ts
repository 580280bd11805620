/** What a path means to a server that reads it as generously as any. Written without a look at the gateway. */

export function pathOf(target: string): string {
  return target.split('?', 1)[0] ?? '';
}

/** Whether a path is `/v1/auth` or below it, for a server that decodes, drops parameters and folds letters. */
export function isTokenEndpoint(path: string): boolean {
  let folded = decoded(path);
  for (let before = ''; before !== folded; ) {
    before = folded;
    folded = simplified(folded);
  }
  return /^\/v1\/auth(?:\/|$)/.test(folded);
}

/** Until nothing is left to decode. Takes one character a byte, and makes text of it. */
function decoded(path: string): string {
  let bytes = path;
  for (let before = ''; before !== bytes; ) {
    before = bytes;
    bytes = bytes.replace(/%([0-9a-f]{2})/gi, (_, digits) =>
      String.fromCharCode(Number.parseInt(digits, 16)),
    );
  }
  return Buffer.from(bytes, 'latin1').toString();
}

function simplified(path: string): string {
  const segments = path
    .normalize('NFKC')
    .toLowerCase()
    .split('/')
    .map((segment) =>
      segment
        .replace(/;.*/s, '')
        .trim()
        .replace(/[.\s]+$/, ''),
    );
  return `/${segments.filter((segment) => segment !== '').join('/')}`;
}
