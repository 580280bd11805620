import { expect, it } from 'bun:test';
import { FairTurns } from '../../src/gateway/exchange/fair-turns.ts';

it('handles 512 requests at once, and the others when the event loop has had a turn', async () => {
  const turns = new FairTurns();
  let handled = 0;
  const handle = () => turns.handle(() => ++handled);
  const responses = Array.from({ length: 2000 }, handle);
  expect([responses[511], responses[512], handled]).toEqual([512, expect.any(Promise), 512]);
  await Promise.resolve();
  expect(handled).toBe(512);
  await Promise.all(responses);
  expect(handled).toBe(2000);
  expect(handle()).toBe(2001);
});
