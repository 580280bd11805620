/** Whether a contender does the work right; what does not is not timed. */

import type { Contender } from './contender.ts';
import { ACCESS_TOKEN, FOREIGN_ORIGIN, HIDDEN_HEADERS, ORIGIN } from './mapping.ts';
import type { Work } from './work.ts';

/** @returns what is wrong with its answers; nothing when all is well */
export async function wrongAnswers(
  contender: Contender,
  url: string,
  upstreamUrl: string,
  works: readonly Work[],
): Promise<string[]> {
  const problems: string[] = [];
  for (const work of works) {
    if (work.contenders && !work.contenders.includes(contender.id)) continue;
    const problem = await wrongAnswer(work, url, upstreamUrl).catch(String);
    if (problem !== undefined) problems.push(`${work.id}: ${problem}`);
  }
  return problems;
}

async function wrongAnswer(work: Work, url: string, upstreamUrl: string): Promise<string | undefined> {
  const answer = await ask(url + work.path, work, work.headers);
  if (answer.status !== work.status) return `status ${answer.status}, not ${work.status}`;
  if (work.status === 403) return undefined;
  const header = headersProblem(answer.headers, work);
  if (header !== undefined) return header;
  return (await bodyProblem(answer, work, upstreamUrl)) ?? (await originProblem(work, url));
}

async function bodyProblem(answer: Response, work: Work, upstreamUrl: string): Promise<string | undefined> {
  if (work.upstreamPath === undefined) return undefined;
  const { range } = work.headers;
  const expected = await ask(upstreamUrl + work.upstreamPath, work, {
    authorization: `Bearer ${ACCESS_TOKEN}`,
    ...(range === undefined ? {} : { range }),
  });
  const body = await answer.bytes();
  if (body.length !== work.bodyBytes) return `${body.length} bytes, not ${work.bodyBytes}`;
  return Buffer.from(body).equals(await expected.bytes()) ? undefined : 'other bytes than the upstream sends';
}

async function originProblem(work: Work, url: string): Promise<string | undefined> {
  const { origin: _, ...others } = work.headers;
  for (const headers of [others, { ...others, origin: FOREIGN_ORIGIN }]) {
    const refused = await ask(url + work.path, work, headers);
    await refused.arrayBuffer();
    if (refused.status !== 403) return `status ${refused.status}, not 403, without an allowed origin`;
    if (refused.headers.get('access-control-allow-origin') === FOREIGN_ORIGIN)
      return 'allows a foreign origin';
  }
  return undefined;
}

function headersProblem(headers: Headers, { path, status }: Work): string | undefined {
  const expected: Record<string, string> = {
    'access-control-allow-origin': ORIGIN,
    'access-control-allow-credentials': 'true',
    'x-content-type-options': 'nosniff',
  };
  if (path === '/api/music/generate') expected['x-generation-id'] = 'generation-1';
  for (const [name, value] of Object.entries(expected)) {
    if (headers.get(name) !== value) return `${name} is ${headers.get(name)}, not ${value}`;
  }
  if (!/\borigin\b/i.test(headers.get('vary') ?? '')) return `vary is ${headers.get('vary')}`;
  if (!/\bX-Generation-Id\b/i.test(headers.get('access-control-expose-headers') ?? '')) {
    return 'exposes no headers';
  }
  if (status === 206 && !headers.has('content-range')) return 'no content-range';
  const shown = HIDDEN_HEADERS.find((name) => headers.get(name)?.match(/nginx\/|rack 7|upstream=1/));
  return shown === undefined ? undefined : `shows the upstream's ${shown}`;
}

function ask(
  url: string,
  { method, body }: Work,
  headers: Readonly<Record<string, string>>,
): Promise<Response> {
  return fetch(url, {
    method,
    headers,
    ...(body === undefined ? {} : { body }),
    decompress: false,
    signal: AbortSignal.timeout(10_000),
  });
}
