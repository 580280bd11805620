/** What the kernel has not yet sent to clients. */

/** Both ports and the length of the send queue of an established connection. @see proc_pid_net(5), `tcp` */
const CONNECTION = /:([0-9A-F]{4}) [0-9A-F]+:([0-9A-F]{4}) 01 ([0-9A-F]{8}):/g;

/** Identifies a connection of this machine, but for the addresses. */
export function connectionKey(localPort: number, remotePort: number): number {
  return localPort * 65_536 + remotePort;
}

/** Returns the bytes in the send queue of every connection, by its key. Empty where the system does not tell. */
export async function sendQueues(): Promise<ReadonlyMap<number, number>> {
  const queues = new Map<number, number>();
  for (const file of ['/proc/self/net/tcp', '/proc/self/net/tcp6']) {
    const text = await Bun.file(file)
      .text()
      .catch(() => '');
    for (const [, local = '', remote = '', queued = ''] of text.matchAll(CONNECTION)) {
      const key = connectionKey(Number.parseInt(local, 16), Number.parseInt(remote, 16));
      queues.set(key, (queues.get(key) ?? 0) + Number.parseInt(queued, 16));
    }
  }
  return queues;
}
