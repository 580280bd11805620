/** What the kernel has not yet sent to clients. */

import { existsSync } from 'node:fs';
import { canonicalAddress } from '../settings/trusted-proxies.ts';

/** Whether the system tells. */
export const canLook = existsSync('/proc/self/net/tcp');

/** A connection of this process, by its own port and its client's address. */
export interface Connection {
  readonly localPort: number;
  readonly address: string;
  readonly port: number;
}

/** The local port, the remote address and port, and the length of the send queue. @see proc_pid_net(5), `tcp` */
const ESTABLISHED = /:([0-9A-F]{4}) ([0-9A-F]+):([0-9A-F]{4}) 01 ([0-9A-F]{8}):/g;
/** How the table of IPv6 begins an IPv4 address. */
const MAPPED = /^0{16}FFFF0{4}/;

/** Returns the bytes in the send queue of every connection, by its key. Empty where the system does not tell. */
export async function sendQueues(): Promise<ReadonlyMap<string, number>> {
  const queues = new Map<string, number>();
  for (const file of ['/proc/self/net/tcp', '/proc/self/net/tcp6']) {
    const text = await Bun.file(file)
      .text()
      .catch(() => '');
    for (const [, local = '', address = '', port = '', queued = ''] of text.matchAll(ESTABLISHED))
      queues.set(`${local} ${address.replace(MAPPED, '')}:${port}`, Number.parseInt(queued, 16));
  }
  return queues;
}

/** The key of a connection in {@link sendQueues}. */
export function connectionKey({ localPort, address, port }: Connection): string {
  return `${hex(localPort, 4)} ${addressInTable(address)}:${hex(port, 4)}`;
}

/** The kernel writes each 32 bits of an address as a number of this machine, whose last byte comes first. */
function addressInTable(address: string): string {
  const bytes = bytesOf(canonicalAddress(address) ?? '');
  const words = Array.from({ length: bytes.length / 4 }, (_, word) => bytes.slice(word * 4, word * 4 + 4));
  return words.flatMap((word) => word.reverse().map((byte) => hex(byte, 2))).join('');
}

function bytesOf(address: string): number[] {
  if (!address.includes(':')) return address.split('.').map(Number);
  const [start = [], end = []] = address.split('::').map((part) => part.split(':').filter(Boolean));
  const zeros = Array<string>(8 - start.length - end.length).fill('0');
  return [...start, ...zeros, ...end].flatMap((group) => {
    const number = Number.parseInt(group, 16);
    return [number >> 8, number & 255];
  });
}

function hex(number: number, digits: number): string {
  return number.toString(16).toUpperCase().padStart(digits, '0');
}
