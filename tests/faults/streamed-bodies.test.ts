/** Bodies whose upstreams and readers pause at random, in a ledger that is nearly full. fast-check prints seed and path. */

import { expect, it, jest, spyOn } from 'bun:test';
import fc from 'fast-check';
import { Admission } from '../../src/gateway/admission/admission.ts';
import type { CallKind } from '../../src/gateway/admission/calls.ts';
import type { Permit } from '../../src/gateway/admission/permit.ts';
import { KEEPS_UP_BYTES, priceOfSlices, priceOfStream } from '../../src/gateway/admission/prices.ts';
import { Exchange } from '../../src/gateway/exchange/exchange.ts';
import { ObservedBody } from '../../src/gateway/exchange/observed-body.ts';
import type { CutOff } from '../../src/gateway/record/request-record.ts';
import { pass } from '../support/passing-time.ts';
import { testSettings } from '../support/world.ts';

const SLICE = 256 * 1024;
const anyChunk = fc.record({
  bytes: fc.constantFrom(1000, SLICE),
  upstreamMs: fc.constantFrom(0, 0, 50, 20_000, 59_000, 61_000),
  readerMs: fc.constantFrom(0, 0, 50, 20_000, 290_000, 310_000),
});
const anyBody = fc.record({
  kind: fc.constantFrom<CallKind[]>('get', 'public', 'change', 'generation'),
  isSliced: fc.boolean(),
  beginsAtMs: fc.constantFrom(0, 0, 5000, 30_000),
  /** Whether the kernel sees the reader take something all the time. */
  isSteady: fc.boolean(),
  chunks: fc.array(anyChunk, { minLength: 1, maxLength: 6 }),
});
type Plan = typeof anyBody extends fc.Arbitrary<infer Value> ? Value : never;

/** How the body ends when there is memory enough. */
function endingOf({ chunks, isSteady }: Plan): string {
  const late = chunks.find((each) => each.upstreamMs >= 60_000 || (each.readerMs >= 300_000 && !isSteady));
  if (!late) return 'whole';
  return late.upstreamMs >= 60_000 ? 'stalled' : 'stopped reading';
}

async function reserve(permit: Permit, isSliced: boolean): Promise<void> {
  const { signal } = new AbortController();
  const length = Number.POSITIVE_INFINITY;
  permit.memory.headArrived(length, 200);
  if (permit.rules.isGeneration) expect(permit.memory.admitTrack(length, signal)).toBeTrue();
  else if (isSliced && permit.rules.isExpendable)
    await permit.memory.reserveBody(priceOfSlices(SLICE), length, signal);
  else await permit.memory.reserveBody(priceOfStream(length), length, signal);
}

/** Reads a chunk after each pause, and nothing more once it is cancelled. */
function readerOf({ chunks }: Plan) {
  const left = chunks.values();
  const cancelled = Promise.withResolvers<undefined>();
  return {
    async read() {
      const chunk = left.next().value;
      const sent = chunk && Bun.sleep(chunk.upstreamMs).then(() => new Uint8Array(chunk.bytes));
      const value = await Promise.race([sent, cancelled.promise]);
      return value ? ({ done: false, value } as const) : ({ done: true } as const);
    },
    cancel: async () => cancelled.resolve(undefined),
  };
}

const isPublic = ({ memory }: ObservedBody) => memory.use === undefined;

/** What is wrong with cutting the body off for want of memory, beside these others. */
function faultsOf(body: ObservedBody, cutOff: CutOff, others: readonly ObservedBody[], now: number) {
  const stands = (each: ObservedBody) =>
    each.memory.isExpendable &&
    each.waitsFor === 'reader' &&
    now - each.takenAt >= (isPublic(each) ? 10_000 : 30_000);
  const standing = others.filter(stands);
  if (!body.memory.isExpendable) return ['a change was cut off'];
  if (cutOff === 'no memory' && standing.some((each) => isPublic(each) || !isPublic(body)))
    return ['one who stands still was not cut off instead'];
  const isNext = body.waitsFor === 'memory' && standing.every((each) => isPublic(each) !== isPublic(body));
  return cutOff === 'room for others' && !stands(body) && !isNext ? ['one who reads was cut off'] : [];
}

/** The bodies of one gateway, each of its own session; its number is the port of its client. */
async function streamAll(admission: Admission, plans: readonly Plan[], live: Map<number, ObservedBody>) {
  const wrong: string[] = [];
  const stream = async (plan: Plan, port: number) => {
    const exchange = new Exchange(new Request('http://gateway.test'), null);
    const ended = Promise.withResolvers<string>();
    const upstreamEnd = Promise.withResolvers<void>();
    await Bun.sleep(plan.beginsAtMs);
    const token = plan.kind === 'public' ? undefined : `token-${port}`;
    const permit = await admission.enter(plan.kind, token, exchange);
    try {
      const endpoint = admission.endpoints.of('GET', '/v1/library', permit.rules.unknownBytes);
      if (!permit.rules.isGeneration) await permit.memory.start(endpoint, new AbortController().signal);
      await reserve(permit, plan.isSliced);
      const onUpstreamEnd = () => {
        live.delete(port);
        upstreamEnd.resolve();
      };
      const client = { connection: { localPort: 1, address: '127.0.0.1', port }, onUpstreamEnd };
      const drainMs = permit.rules.isGeneration ? 280_000 : undefined;
      const body = new ObservedBody(
        { rest: readerOf(plan) },
        exchange.record,
        permit.memory,
        client,
        drainMs,
      );
      live.set(port, body);
      exchange.keepOpenUntil(upstreamEnd.promise);
      const pauses = plan.chunks.values();
      const write = () => Bun.sleep(pauses.next().value?.readerMs ?? 0).then(() => 1);
      const close = () => {
        const { cutOff, cause = '' } = exchange.record;
        live.delete(port);
        if (cutOff && cutOff !== 'stopped reading')
          wrong.push(...faultsOf(body, cutOff, [...live.values()], admission.watch.now));
        if (cutOff && permit.memory.bytes > KEEPS_UP_BYTES) wrong.push('it keeps its memory');
        ended.resolve(cutOff ?? cause);
      };
      const end = () => {
        ended.resolve('whole');
        return 0;
      };
      void body.source.pull({ write, close, end, flush: () => 0, start: () => {} });
    } finally {
      exchange.letGo();
    }
    return ended.promise;
  };
  const endings = await Promise.all(plans.map((plan, port) => stream(plan, port).catch(() => 'refused')));
  return { endings, wrong };
}

it('a body is whole, or broken with the right one named, and everything is given back', async () => {
  const seen = new Set<string>();
  let table = () => '';
  const anyCharges = fc.array(fc.constantFrom(0, 0, 50, 58, 64), { minLength: 1, maxLength: 6 });
  const anyShare = fc.double({ min: 0.4, max: 0.86, noNaN: true });
  const anyBodies = fc.array(anyBody, { minLength: 2, maxLength: 8 });
  const property = fc.asyncProperty(anyShare, anyBodies, anyCharges, async (usedShare, plans, charges) => {
    jest.clearAllTimers();
    const startedAt = performance.now();
    // In MiB, for 50 s each.
    const charge = () => charges[Math.floor((performance.now() - startedAt) / 50_000) % charges.length] ?? 0;
    const settings = testSettings({}, 1);
    const admission = new Admission(settings, () => charge() * 1024 ** 2);
    const { ledger, perSession, streams } = admission;
    const used = Math.floor(ledger.limit * usedShare);
    ledger.take(used);
    const live = new Map<number, ObservedBody>();
    const queued = (port: number, { waitsFor, isComplete }: ObservedBody) =>
      waitsFor === 'reader' && !isComplete && !plans[port]?.isSteady ? 'FFFFFFFF' : '00000000';
    table = () =>
      [...live].map(([port, body]) => `:0001 0100007F:000${port} 01 ${queued(port, body)}:`).join();
    let isOver = false;
    const streamed = streamAll(admission, plans, live).finally(() => {
      isOver = true;
    });
    for (let step = 0; step < 3000 && (!isOver || streams.inUse); step++) await pass(500);
    expect([isOver, streams.inUse]).toEqual([true, 0]);
    const { endings, wrong } = await streamed;
    expect(wrong).toEqual([]);
    for (const [port, ending] of endings.entries()) {
      seen.add(ending);
      const isShort = ['refused', 'no memory', 'room for others'].includes(ending);
      if (plans[port] && !isShort) expect(ending).toBe(endingOf(plans[port]));
    }
    // What the upstreams and readers still wait for.
    await pass(310_000);
    expect([ledger.inUse - used, ledger.expected, perSession.size, jest.getTimerCount()]).toEqual([
      0, 0, 0, 0,
    ]);
  });
  const file = Object.assign(Bun.file('/proc'), { text: async () => table() });
  using _files = spyOn(Bun, 'file').mockReturnValue(file);
  // Once in each second of the faked time, in a process with the heap of many tests, it would take a minute.
  using _collections = spyOn(Bun, 'gc').mockReturnValue(undefined);
  jest.useFakeTimers();
  await fc.assert(property, { numRuns: Number(process.env['RUNS'] ?? 40), seed: 20_261_123 });
  const endings = ['no memory', 'refused', 'room for others', 'stalled', 'stopped reading', 'whole'];
  expect([...seen].sort()).toEqual(endings);
}, 60_000);
