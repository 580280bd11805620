/** Compares what the kernel may keep for each connection with the memory of the process, which it charges for it. */

import { readFileSync } from 'node:fs';
import type { Finding } from './finding.ts';

/** Of this network namespace: the least, the initial and the greatest size of a send buffer. @see tcp(7), `tcp_wmem` */
const SEND_BUFFERS = '/proc/sys/net/ipv4/tcp_wmem';
/** So many readers that stop must find room: a stranger can open as many. */
const STOPPED_READERS = 1000;
const KiB = 1024;
const MiB = 1024 * KiB;

/** @param sendBuffers the text of the kernel's file; undefined where there is none, and then nothing is found */
export function socketFindings(memoryLimitBytes: number, sendBuffers = readSendBuffers()): Finding[] {
  const maximum = Number(sendBuffers?.trim().split(/\s+/)[2] ?? 0);
  if (maximum * STOPPED_READERS <= memoryLimitBytes) return [];
  const text =
    `net.ipv4.tcp_wmem lets the kernel keep ${maximum / KiB} KiB for a reader that stops, too much for the ` +
    `${Math.round(memoryLimitBytes / MiB)} MiB of memory: use deploy/60-music-gateway.conf, or --sysctl for a container`;
  return [{ level: 'warning', text }];
}

function readSendBuffers(): string | undefined {
  try {
    return readFileSync(SEND_BUFFERS, 'utf8');
  } catch {
    return undefined;
  }
}
