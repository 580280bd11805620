import { expect } from 'bun:test';
import { describeWith, itWith, machine, program } from '../../support/requirements.ts';
import { startTlsProxy, TLS_PROXIES } from '../../support/tls-proxies.ts';
import { openMemoryCgroup } from './memory-cgroup.ts';
import { endure, GENERATIONS, startBesieged, type Way } from './siege.ts';

const tried = await openMemoryCgroup();
await tried?.[Symbol.asyncDispose]();
const MEMORY_CGROUP = machine('the right to make a memory cgroup', tried !== undefined);

const CONTAINER_MB = 256;
const SECONDS = 40;

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
        const gateway = await startBesieged(stack);
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
});
