/** One spell of load with wrk, and what came of it. */

import { writeFile } from 'node:fs/promises';
import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { endWithThisProgram, REST_CORE } from './running.ts';
import type { Work } from './work.ts';

const Report = Type.Object({
  requests: Type.Integer(),
  bytes: Type.Integer(),
  seconds: Type.Number(),
  p50Ms: Type.Number(),
  p99Ms: Type.Number(),
  /** Answers with a status above 399. */
  refused: Type.Integer(),
  /** Connections that failed, broke, or waited too long. */
  broken: Type.Integer(),
});

export interface Spell {
  readonly requests: number;
  readonly bytes: number;
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

let salt = 0;

/** @throws Error when an answer was not what the work says, or a connection failed */
export async function load(work: Work, url: string, seconds: number, folder: string): Promise<Spell> {
  const script = `${folder}/${work.id}.lua`;
  await writeFile(script, lua(work, `${process.pid}-${++salt}`));
  const options = ['-t1', `-c${work.connections}`, `-d${seconds}s`, '--timeout', '20s', '--latency'];
  const wrk = Bun.spawn(['taskset', '-c', `${REST_CORE}`, 'wrk', ...options, '-s', script, url + work.path], {
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'inherit',
    timeout: (seconds + 60) * 1000,
    killSignal: 'SIGKILL',
  });
  endWithThisProgram(wrk);
  const output = await wrk.stdout.text();
  const [, json = 'null'] = /^RESULT (.*)$/m.exec(output) ?? [];
  const { refused, broken, ...spell } = Value.Parse(Report, JSON.parse(json));
  const wrong = work.status > 399 ? spell.requests - refused : refused;
  if (wrong || broken) {
    throw new Error(`${work.id}: ${wrong} of ${spell.requests} answers wrong, ${broken} connections broken`);
  }
  if (spell.bytes === 0) throw new Error(`${work.id}: nothing was answered within ${spell.seconds} s`);
  return spell;
}

function lua({ method, headers, body, eachRequest }: Work, salt: string): string {
  const lines = [
    `wrk.method = ${JSON.stringify(method)}`,
    ...Object.entries(headers).map(
      ([name, value]) => `wrk.headers[${JSON.stringify(name)}] = ${JSON.stringify(value)}`,
    ),
  ];
  if (body !== undefined) lines.push(`wrk.body = ${JSON.stringify(body)}`);
  if (eachRequest !== undefined) {
    lines.push(
      'local count = 0',
      `local salt = ${JSON.stringify(salt)}`,
      'local headers = wrk.headers',
      'request = function()',
      '  count = count + 1',
      `  ${eachRequest}`,
      '  return wrk.format()',
      'end',
    );
  }
  lines.push(
    'done = function(summary, latency)',
    '  local errors = summary.errors',
    '  print(string.format(',
    `    'RESULT {"requests":%d,"bytes":%d,"seconds":%f,"p50Ms":%f,"p99Ms":%f,"refused":%d,"broken":%d}',`,
    '    summary.requests, summary.bytes, summary.duration / 1e6,',
    '    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,',
    '    errors.status, errors.connect + errors.read + errors.write + errors.timeout))',
    'end',
  );
  return `${lines.join('\n')}\n`;
}
