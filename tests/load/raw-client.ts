/** Requests on sockets that their sender can stop reading, or leave unfinished. */

import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { ORIGIN } from '../support/world.ts';

/** @param localAddress an address of this machine, for limits that are for one client */
export function openSocket({ protocol, hostname, port }: URL, localAddress?: string): Socket {
  const options = { host: hostname, port: Number(port), ...(localAddress && { localAddress }) };
  const isSecure = protocol === 'https:';
  const socket = isSecure ? connectTls({ ...options, rejectUnauthorized: false }) : connect(options);
  // The gateway or a proxy may refuse the connection, or end it.
  return socket.on('error', () => {});
}

export function cookieOf(user: string) {
  return { cookie: `svc_music_access=${user}; svc_music_refresh=${user}-refresh` };
}

/** @param body as much as is sent of it; `content-length` may declare more */
export function requestOf(start: string, headers: Readonly<Record<string, string | number>> = {}, body = '') {
  const declared = body ? { 'content-type': 'application/json', 'content-length': body.length } : {};
  const lines = Object.entries({ host: 'gateway.test', origin: ORIGIN, ...declared, ...headers });
  return `${start} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body}`;
}

export function orderOf(prompt: string, key: string, user: string, padding = ''): string {
  const order = JSON.stringify({ model: 'm', prompt, music_length_ms: 3000 });
  const fields = { ...cookieOf(user), 'idempotency-key': key, 'x-padding': padding };
  return requestOf('POST /api/music/generate', fields, order);
}
