/** Counts what a run has met, so that one can see that it got beyond the first check. */

import type { Call } from './call-reader.ts';
import type { Exchange } from './connection.ts';
import type { FuzzRequest } from './fuzz-request.ts';
import { isBare } from './judge-answer.ts';
import { BASE_PATH } from './upstream-answers.ts';

export class Figures {
  readonly #requests = new Map<string, number>();
  readonly #answers = new Map<string, number>();
  readonly #bare = new Map<string, number>();
  readonly #calls = new Map<string, number>();

  countExchange(request: FuzzRequest, { answers, end }: Exchange): void {
    add(this.#requests, `${request.kind}${request.isFramed ? ', complete' : ''}`);
    if (!answers.length) add(this.#answers, end === 'closed' ? 'closed without answer' : 'waits for more');
    for (const answer of answers) {
      if (isBare(answer)) add(this.#bare, String(answer.status));
      else add(this.#answers, String(answer.status));
    }
  }

  countCall({ target, headers }: Call, hasOwner: boolean): void {
    add(this.#calls, kindOf(target, headers.has('authorization')));
    if (!hasOwner) add(this.#calls, '(of these without a marker)');
  }

  toString(): string {
    return [
      ['requests', this.#requests],
      ['answers', this.#answers],
      ['bare answers of Bun', this.#bare],
      ['upstream calls', this.#calls],
    ]
      .map(([name, counts]) => `${name}: ${counts instanceof Map ? listed(counts) : ''}`)
      .join('\n');
  }
}

function kindOf(target: string, hasSession: boolean): string {
  if (target.startsWith('/idp/')) return 'code exchange';
  const path = target.slice(BASE_PATH.length);
  if (
    ['/v1/auth/idp', '/v1/auth/refresh', '/v1/auth/logout', '/v1/me', '/v1/models', '/v1/music'].includes(
      path,
    )
  )
    return path;
  return hasSession ? 'proxied' : 'public playback';
}

function add(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}

function listed(counts: ReadonlyMap<string, number>): string {
  const entries = [...counts].toSorted(([a], [b]) => a.localeCompare(b));
  return entries.map(([name, count]) => `${name} ${count}`).join(', ') || 'none';
}
