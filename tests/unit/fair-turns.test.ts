import { expect, it } from 'bun:test';
import { FairTurns } from '../../src/gateway/fair-turns.ts';

it('handles 512 requests at once, and the others when the event loop has had a turn', async () => {
  const turns = new FairTurns();
  let handled = 0;
  const request = new Request('http://gateway.test');
  const handle = () => turns.handle(request, () => ++handled);
  const responses = Array.from({ length: 2000 }, handle);
  expect([responses[511], responses[512], handled]).toEqual([512, expect.any(Promise), 512]);
  await Promise.resolve();
  // A microtask is no turn.
  responses.push(handle());
  expect(handled).toBe(512);
  await Promise.all(responses);
  expect(handled).toBe(2001);
  expect(handle()).toBe(2002);
});

it('lets a request that waited for its turn get as far as it can before the next one', async () => {
  const turns = new FairTurns();
  const request = new Request('http://gateway.test');
  for (let earlier = 0; earlier < 512; earlier++) turns.handle(request, () => {});
  const steps: string[] = [];
  const respond = async (name: string) => {
    steps.push(`${name} begins`);
    for (let read = 0; read < 10; read++) await undefined;
    steps.push(`${name} ends`);
  };
  await Promise.all(['one', 'two'].map((name) => turns.handle(request, () => respond(name))));
  expect(steps).toEqual(['one begins', 'one ends', 'two begins', 'two ends']);
});
