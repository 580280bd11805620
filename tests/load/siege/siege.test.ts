import { expect } from 'bun:test';
import { openMemoryCgroup } from '../../support/memory-cgroup.ts';
import { memoryOf } from '../../support/process-status.ts';
import { describeWith, itWith, machine, program } from '../../support/requirements.ts';
import { startTlsProxy, TLS_PROXIES } from '../../support/tls-proxies.ts';
import { listeners } from '../soak/listeners.ts';
import { ATTACKS } from './attacks.ts';
import { CONTAINER_MB, checkSession, endure, GENERATIONS, startBesieged, type Way } from './siege.ts';

const tried = await openMemoryCgroup(1024 ** 3);
await tried?.[Symbol.asyncDispose]();
const MEMORY_CGROUP = machine('the right to make a memory cgroup', tried !== undefined);

const SECONDS = 60;

/** The gateway itself, or a proxy as it is shipped. */
const WAYS = [
  {
    name: 'directly',
    needs: [],
    open: async (url: string): Promise<Way> => ({ url, certificate: undefined }),
  },
  ...TLS_PROXIES.map(({ program: name, prepare }) => ({
    name: `through ${name}`,
    needs: [program(name), program('openssl')],
    async open(url: string, stack: AsyncDisposableStack): Promise<Way> {
      const { port, certificate } = stack.use(await startTlsProxy(prepare, Number(new URL(url).port)));
      return { url: `https://127.0.0.1:${port}`, certificate };
    },
  })),
];

describeWith([MEMORY_CGROUP], 'a gateway in 256 MB', () => {
  for (const { name, needs, open } of WAYS) {
    itWith(
      needs,
      `serves its users while everything is tried at once, ${name}`,
      async () => {
        await using stack = new AsyncDisposableStack();
        const { gateway } = await startBesieged(stack, { MAX_IN_FLIGHT_PER_SESSION: '10' });
        const outcome = await endure(gateway, await open(gateway.url, stack), SECONDS, CONTAINER_MB / 2);
        console.log(`siege ${name}: ${JSON.stringify(outcome)}`);
        expect(outcome.problems).toEqual([]);
        expect(outcome.complete).toBe(GENERATIONS);
        expect(outcome.checks).toBeGreaterThan(100);
        expect(outcome.p99Ms).toBeLessThan(1000);
      },
      150_000,
    );
  }

  for (const { name, run } of ATTACKS) {
    itWith(
      [],
      `is not harmed by ${name}`,
      async () => {
        await using stack = new AsyncDisposableStack();
        const { gateway, upstreamUrl } = await startBesieged(stack);
        const way = { url: gateway.url, certificate: undefined };
        await checkSession(way);
        const harmed = await Promise.race([
          run(gateway.url, upstreamUrl),
          gateway.exited.then(() => 'killed'),
        ]);
        expect(harmed).toBe(0);
        await checkSession(way);
        const { rssMb, peakMb } = await memoryOf(gateway.pid);
        console.log(`${name}: ${rssMb} MB, ${peakMb} MB at its peak`);
      },
      150_000,
    );
  }

  itWith(
    [],
    'serves 350 of 400 players that have stopped reading, and every byte to those that read on',
    async () => {
      const { figures, problems } = await listeners({
        ...{ players: 400, memoryMb: CONTAINER_MB, trackBytes: 10_000_000, checks: 1000, limitMs: 140_000 },
      });
      console.log(figures);
      expect(problems).toEqual([]);
      expect(figures['players served']).toBeGreaterThanOrEqual(350);
      expect(figures['generations with every byte']).toBe(5);
    },
    150_000,
  );
});
