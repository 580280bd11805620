/** `Link` lines: lists as RFC 8288 allows them, and what only looks like one. */

import type { Random } from '../random.ts';
import { address } from './upstream-addresses.ts';

const PARAMETERS = [
  ...['; rel=next', '; rel="next"', ';rel="next prev"', '; rel = "next"', '; rel="next"; title="a, b; c"'],
  ...[
    '; title="say \\"<x>, y\\""; rel=up',
    "; rel=up; title*=UTF-8''a%2Cb",
    '',
    ';',
    '; ;rel=up',
    '; crossorigin',
  ],
  ...['; rel="https://rels.test/a,b"', ' ; rel=preload ; as=audio', '; media="(min-width: 1px), print"'],
];

export function linkLines(random: Random, host: string): string[] {
  const lines: string[] = [];
  while (lines.length < 3 && random.chance(0.5)) lines.push(`Link: ${list(random, host)}`);
  return lines;
}

function list(random: Random, host: string): string {
  if (random.chance(0.1)) return odd(random, host);
  const members = Array.from({ length: random.between(1, 4) }, () => member(random, host));
  return members.join(random.pick([', ', ', ', ',', ' ,\t', ', , ']));
}

function member(random: Random, host: string): string {
  return `<${random.chance(0.05) ? '' : address(random, host)}>${random.pick(PARAMETERS)}`;
}

/** Not a list of links, with the upstream's address in it. */
function odd(random: Random, host: string): string {
  const own = `http://${host}/base/v1/x`;
  return random.pick([
    ...[
      own,
      `<${own}`,
      `<${own}>; title="open`,
      `<next>; anchor="${own}"`,
      `"<${own}>"`,
      `${own}>; rel=next`,
    ],
    ...[`<next> <${own}>`, `<<${own}>>`, `<next>; rel=${own}`, `<next>; title="\\", <${own}>`, `;<${own}>`],
    ...[`<https://cdn.test/>; title="x", <${own}`, `<${own}>${';'.repeat(2000)}`, '<next>,'.repeat(300)],
  ]);
}
