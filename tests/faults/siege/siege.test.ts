import { describe, expect, it } from 'bun:test';
import { startTlsProxy, TLS_PROXIES } from '../../support/tls-proxies.ts';
import { openMemoryCgroup } from './memory-cgroup.ts';
import { type Siege, startSiege } from './siege.ts';

const PROXIES = TLS_PROXIES.filter(({ program }) => Bun.which(program));
for (const { program } of TLS_PROXIES) {
  if (!Bun.which(program)) console.log(`skipped: siege.test.ts needs ${program}`);
}
const canLimit = await openMemoryCgroup().then(async (cgroup) => {
  await cgroup?.[Symbol.asyncDispose]();
  return cgroup !== undefined;
});
if (!canLimit) console.log('skipped: siege.test.ts cannot make a memory cgroup here');

const CONTAINER_MB = 256;

/** The gateway itself, or a proxy as it is shipped. */
const WAYS = [
  { name: 'directly', open: async ({ gateway }: Siege) => ({ url: gateway.url, certificate: undefined }) },
  ...PROXIES.map(({ program, prepare }) => ({
    name: `through ${program}`,
    async open({ gateway, stack }: Siege) {
      const proxy = stack.use(await startTlsProxy(prepare, Number(new URL(gateway.url).port)));
      return { url: `https://127.0.0.1:${proxy.port}`, certificate: proxy.certificate };
    },
  })),
];

describe.skipIf(!canLimit)('a gateway in 256 MB', () => {
  it.each(WAYS)(
    'serves its users while everything is tried at once, $name',
    async ({ name, open }) => {
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
});
