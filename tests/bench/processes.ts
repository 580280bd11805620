/** Starts a program on a core of its own, and ends it with this process at the latest. */

import { accessSync, constants } from 'node:fs';
import { CERTIFICATE } from '../support/certificate.ts';
import { freePorts } from '../support/free-ports.ts';
import mapping from './mapping.json' with { type: 'json' };

/** One core for the contender, and one for the load generator, the upstream and this process. */
export const CONTENDER_CORE = 0;
export const OTHER_CORE = 1;

const START_LIMIT_MS = 20_000;
const LINE_FEED = 10;

export interface Place {
  /** In it, each program gets a folder of its own for its configuration and temporary files. */
  readonly folder: string;
  readonly upstreamUrl: string;
  /** The address to listen on; 127.0.0.1 unless given. */
  readonly host?: string;
  /** Whether programs write a line for each request to standard output. */
  readonly hasLog?: boolean;
}

/**
 * In its arguments, environment and template, `{{name}}` becomes a value, a part of the mapping, `folder`, `host`, `port`,
 * `tlsPort`, `certificate`, `log`, `upstreamUrl`, `scheme` or `upstream`; the last two are parts of the one before.
 */
export interface Program {
  readonly program: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Becomes the file `configuration` in its folder. */
  readonly template?: string;
  readonly values?: Readonly<Record<string, string>>;
  /** What `{{log}}` becomes. */
  readonly log?: { readonly off: string; readonly on: string };
}

export type Running = Awaited<ReturnType<typeof start>>;

const ended = new AbortController();
process.on('exit', () => ended.abort());

/** Of programs and devices, those that this machine lacks or this user may not use. */
export function missingOf(needs: readonly string[]): string[] {
  return needs.filter((name) => (name.startsWith('/') ? !isWritable(name) : !Bun.which(name)));
}

export function spawnOn(core: number, command: readonly string[], env = {}) {
  return Bun.spawn(['taskset', '-c', `${core}`, ...command], {
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 2 * 60 * 60_000,
    signal: ended.signal,
    killSignal: 'SIGKILL',
  });
}

/** @throws Error when the program ends, or does not respond in time */
export async function start(launched: Program, place: Place, core = CONTENDER_CORE) {
  const { program, args, env = {}, template, values, log } = launched;
  const { host = '127.0.0.1', upstreamUrl, hasLog } = place;
  const [scheme, upstream] = upstreamUrl.split('://');
  const port = await freePorts(2);
  const tlsPort = port + 1;
  const folder = `${place.folder}/${port}`;
  const known = new Map(
    Object.entries({
      ...mapping,
      ...values,
      folder,
      host,
      port,
      tlsPort,
      certificate: CERTIFICATE,
      upstreamUrl,
      scheme,
      upstream,
      log: log?.[hasLog ? 'on' : 'off'],
    }),
  );
  const fillIn = (text: string) => text.replace(/\{\{(\w+)\}\}/g, (_, name: string) => `${known.get(name)}`);
  const configuration = template ? await Bun.file(new URL(template, import.meta.url)).text() : '';
  await Bun.write(`${folder}/configuration`, fillIn(configuration));
  const command = [program, ...args.map(fillIn)];
  const environment = Object.entries(env).map(([name, value]) => [name, fillIn(value)]);
  const startedAt = performance.now();
  const child = spawnOn(core, command, Object.fromEntries(environment));
  let output = '';
  let lines = 0;
  const read = async (stream: ReadableStream<Uint8Array>) => {
    for await (const chunk of stream) {
      output = (output + Buffer.from(chunk.subarray(-4000)).toString()).slice(-4000);
      for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, end + 1)) lines++;
    }
  };
  const outputRead = Promise.all([read(child.stdout), read(child.stderr)]);
  const stop = async () => {
    child.kill('SIGKILL');
    await Promise.all([child.exited, outputRead]);
  };
  const url = `http://${host}:${port}`;
  const responds = () => fetch(`${url}/api/health`, { keepalive: false }).then(Boolean, () => false);
  // `eventually` checks too rarely to measure a start of a few milliseconds.
  while (!(await responds())) {
    if (child.exitCode !== null || performance.now() - startedAt > START_LIMIT_MS) {
      await stop();
      throw new Error(`${command.join(' ')} did not start:\n${output}`);
    }
    await Bun.sleep(1);
  }
  return {
    url,
    /** For a program that listens at `tlsPort`. */
    tlsUrl: `https://${host}:${tlsPort}`,
    pid: child.pid,
    startMs: performance.now() - startedAt,
    /** The end of what it has written, and how many lines. */
    written: () => ({ output, lines }),
    [Symbol.asyncDispose]: stop,
  };
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
