/**
 * A network with a long round trip on this machine: two TUN devices, one of them in a network namespace, and a loop that
 * passes each packet on when its time has come. `tc netem` does the same in the kernel, but many kernels lack it.
 */

import { dlopen } from 'bun:ffi';
import { closeSync, constants, openSync, readlinkSync, readSync, writeSync } from 'node:fs';
import { eventually } from '../support/eventually.ts';
import { OTHER_CORE, spawnOn } from './processes.ts';

/** @see RFC 2544, appendix C.2.2: addresses for benchmarks */
const NEAR_ADDRESS = '198.18.0.1';
export const FAR_ADDRESS = '198.18.0.2';
/** @see linux/if_tun.h: TUNSETIFF, and IFF_TUN | IFF_NO_PI */
const SET_INTERFACE = 0x400454ca;
const PACKETS_ONLY = 0x1001;
const MAX_PACKET_BYTES = 2048;

/** What {@link openDelayLine} needs beyond Bun. */
export const NEEDED_FOR_DELAY = ['/dev/net/tun', 'ip', 'unshare', 'nsenter'];

/**
 * Devices and namespace end with this process and its child, however it ends.
 *
 * @param oneWayMs how long each packet is under way
 * @returns the address on this side, and the start of a command that runs on the far side
 */
export async function openDelayLine(oneWayMs: number) {
  const near = openDevice(`bench${process.pid}n`);
  const far = openDevice(`bench${process.pid}f`);
  const namespace = spawnOn(OTHER_CORE, ['unshare', '--net', 'sleep', 'infinity']);
  const namespaceOf = (pid: number | 'self') => readlinkSync(`/proc/${pid}/ns/net`);
  await eventually(() => namespaceOf(namespace.pid) !== namespaceOf('self'), 'a network namespace');
  const onFarSide = ['nsenter', `--net=/proc/${namespace.pid}/ns/net`];
  ip([], `link set ${far.name} netns ${namespace.pid}`);
  for (const [prefix, name, own, other] of [
    [[], near.name, NEAR_ADDRESS, FAR_ADDRESS],
    [onFarSide, far.name, FAR_ADDRESS, NEAR_ADDRESS],
  ] as const) {
    ip(prefix, `address add ${own} peer ${other} dev ${name}`);
    ip(prefix, `link set ${name} up txqueuelen 10000`);
    // Debian's default. Another one of this machine, such as BBR, would send on an idle connection as if it were not.
    const route = `scope link src ${own} proto kernel congctl cubic`;
    ip(prefix, `route replace ${other} dev ${name} ${route}`);
  }
  const moves = [
    delayedMove(near.descriptor, far.descriptor, oneWayMs),
    delayedMove(far.descriptor, near.descriptor, oneWayMs),
  ];
  const timer = setInterval(() => {
    for (const move of moves) move();
  }, 1);
  return {
    host: NEAR_ADDRESS,
    onFarSide,
    async [Symbol.asyncDispose]() {
      // Without a line, the kernel would keep the connections that have not yet closed for minutes.
      await Bun.sleep(5 * oneWayMs);
      clearInterval(timer);
      closeSync(near.descriptor);
      closeSync(far.descriptor);
      namespace.kill('SIGKILL');
      await namespace.exited;
    },
  };
}

function openDevice(name: string) {
  const descriptor = openSync('/dev/net/tun', constants.O_RDWR | constants.O_NONBLOCK);
  const request = Buffer.alloc(40);
  request.write(name);
  request.writeUInt16LE(PACKETS_ONLY, 16);
  const libc = dlopen('libc.so.6', { ioctl: { args: ['i32', 'u64', 'ptr'], returns: 'i32' } });
  if (libc.symbols.ioctl(descriptor, SET_INTERFACE, request) !== 0) throw new Error(`no TUN device ${name}`);
  return { name, descriptor };
}

function ip(prefix: readonly string[], command: string): void {
  const { success, stderr } = Bun.spawnSync([...prefix, 'ip', ...command.split(' ')]);
  if (!success) throw new Error(`ip ${command}: ${stderr}`);
}

/** @returns a function that takes what has arrived at one device, and sends to the other what is due */
function delayedMove(from: number, to: number, delayMs: number): () => void {
  const underWay: { packet: Buffer; dueAt: number }[] = [];
  return () => {
    const now = performance.now();
    for (let packet = receive(from); packet; packet = receive(from))
      underWay.push({ packet, dueAt: now + delayMs });
    for (let first = underWay[0]; first && first.dueAt <= now; first = underWay[0]) {
      writeSync(to, first.packet);
      underWay.shift();
    }
  };
}

/** Undefined when nothing waits. */
function receive(descriptor: number): Buffer | undefined {
  const packet = Buffer.alloc(MAX_PACKET_BYTES);
  try {
    return packet.subarray(0, readSync(descriptor, packet));
  } catch {
    return undefined;
  }
}
