/** Puts a request together from the grammar's parts. */

import type { Random } from '../random.ts';
import { body } from './bodies.ts';
import { framed } from './framing.ts';
import { headerLines } from './headers.ts';
import { aim } from './targets.ts';

export interface Written {
  /** One character a byte. */
  readonly bytes: string;
  /** Complete, with a length that is right. */
  readonly isFramed: boolean;
}

export interface Wishes {
  readonly marker: string;
  /** How likely each part is to be odd; at 0 the request is one that the studio could send. */
  readonly oddity: number;
  readonly isForbidden: boolean;
}

const VERSIONS = ['HTTP/1.0', 'HTTP/1.2', 'HTTP/2.0', 'HTTP/0.9', 'http/1.1', 'HTTP/1.1 ', 'HTTP/11', ''];

/** Bun closes the connection on a method that it does not know, and on some a CONNECT, without an answer. */
const ANSWERED_METHODS = /^(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|TRACE|PROPFIND)$/;

export function writeRequest(random: Random, { marker, oddity, isForbidden }: Wishes): Written {
  const { method, target } = aim(random, marker, oddity);
  // The two together have led to the wrong path before.
  const hasOddHost = random.chance(target.includes('/api/health') ? 0.4 : oddity / 2);
  const lines = headerLines(random, { marker, oddity, isForbidden, hasOddHost });
  const hasBody = method === 'POST' || method === 'PUT' || method === 'PATCH' || random.chance(oddity / 4);
  let bytes = '';
  let isFramed = ANSWERED_METHODS.test(method);
  if (hasBody) {
    const content = body(random, target, marker, oddity);
    const end = framed(random, content.bytes, oddity);
    if (content.contentType !== undefined) lines.push(`Content-Type: ${content.contentType}`);
    lines.push(...end.lines);
    bytes = end.bytes;
    isFramed &&= end.isHonest;
  }
  const isOddVersion = random.chance(oddity / 20);
  const version = isOddVersion ? random.pick(VERSIONS) : 'HTTP/1.1';
  return { bytes: `${method} ${target} ${version}\r\n${lines.join('\r\n')}\r\n\r\n${bytes}`, isFramed };
}
