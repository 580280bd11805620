/** Finds out why no connection to Redis can be opened: Bun's client only says that it is closed. */

import net from 'node:net';
import tls from 'node:tls';
import { errorCode } from '../gateway/http/error-summary.ts';
import { certificateProblem } from './certificate-problem.ts';
import { DEADLINE_MS } from './finding.ts';

const TEXTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'does not accept connections: does it run there, and is the port right?',
  ENOENT: 'does not exist: does Redis run, and is the path of its socket right?',
  EACCES: 'is a socket that this user may not open: see unixsocketperm in the configuration of Redis',
  ENOTFOUND: 'has a host name that is not found: correct it, or the DNS',
  NOAUTH: 'does not accept the user name or the password, or needs one',
  PONG: 'does not accept the user name, the password or the database of the address',
  DENIED: 'accepts only connections from its own machine: set a password there',
  LATE: 'does not respond: is it Redis, and with or without TLS?',
};

/** @returns the end of a sentence about Redis */
export async function redisConnectProblem(url: string): Promise<string> {
  const code = await reply(new URL(url));
  return TEXTS[code] ?? `${certificateProblem(code) ?? 'cannot be reached'} (${code})`;
}

/** What Redis says first to a connection that has not authenticated, or the code of the connection's error. */
function reply({ protocol, hostname, port, pathname }: URL): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const address = { host: hostname, port: Number(port || 6379) };
  const isTls = /^(redis|valkey)s:/.test(protocol);
  const socket = isTls
    ? tls.connect(address)
    : net.connect(protocol.includes('+unix') ? { path: pathname } : address);
  socket.once(isTls ? 'secureConnect' : 'connect', () => socket.write('PING\r\n'));
  socket.once('data', (data) =>
    resolve(/^[+-]([A-Z]{1,20})\b/.exec(data.toString('latin1'))?.[1] ?? 'no Redis'),
  );
  socket.once('error', (error) => resolve(errorCode(error) || error.name));
  socket.once('close', () => resolve('closed'));
  socket.setTimeout(DEADLINE_MS / 2, () => resolve('LATE'));
  return promise.finally(() => socket.destroy());
}
