import { expect } from 'bun:test';
import { describeWith, itWith, machine, program } from '../../support/requirements.ts';
import { startTlsProxy, TLS_PROXIES } from '../../support/tls-proxies.ts';
import { openMemoryCgroup } from './memory-cgroup.ts';
import { type Siege, startSiege } from './siege.ts';

const isLimitable = await openMemoryCgroup().then(async (cgroup) => {
  await cgroup?.[Symbol.asyncDispose]();
  return cgroup !== undefined;
});
const MEMORY_CGROUP = machine('the right to make a memory cgroup', isLimitable);

const CONTAINER_MB = 256;

/** The gateway itself, or a proxy as it is shipped. */
const WAYS = [
  {
    name: 'directly',
    requirements: [],
    open: async ({ gateway }: Siege) => ({ url: gateway.url, certificate: undefined }),
  },
  ...TLS_PROXIES.map(({ program: name, prepare }) => ({
    name: `through ${name}`,
    requirements: [program(name), program('openssl')],
    async open({ gateway, stack }: Siege) {
      const proxy = stack.use(await startTlsProxy(prepare, Number(new URL(gateway.url).port)));
      return { url: `https://127.0.0.1:${proxy.port}`, certificate: proxy.certificate };
    },
  })),
];

describeWith([MEMORY_CGROUP], 'a gateway in 256 MB', () => {
  for (const { name, requirements, open } of WAYS) {
    itWith(
      requirements,
      `serves its users while everything is tried at once, ${name}`,
      async () => {
        await using siege = await startSiege();
        const { figures, problems } = await siege.endure(await open(siege), 60);
        console.log(`siege ${name}: ${JSON.stringify(figures)}`);
        expect(problems).toEqual([]);
        expect(figures['paid generations whole']).toBe(20);
        expect(figures['session checks']).toBeGreaterThan(100);
        expect(figures['p99 ms']).toBeLessThan(1000);
        expect(figures['MB after 30 s']).toBeLessThan(CONTAINER_MB / 2);
      },
      150_000,
    );
  }
});
