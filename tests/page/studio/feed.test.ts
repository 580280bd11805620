import { describe, expect, it } from 'bun:test';
import { createFeed } from '../../../src/demo/studio/feed.ts';
import { fakeTime, settle } from '../fake-time.ts';

/**
 * Runs a feed through steps: milliseconds that pass, and otherwise what happens. Any other word is a response to the
 * oldest request without one, `newest=` one to the newest; `lost` is none. Returns what the feed has reported.
 */
async function runFeed(steps: string, stopsAtFailure = false) {
  const advance = fakeTime();
  const requests: PromiseWithResolvers<string>[] = [];
  const events: string[] = [];
  let asked = 0;
  const feed = createFeed({
    load() {
      const request = Promise.withResolvers<string>();
      requests.push(request);
      asked++;
      return request.promise;
    },
    show: (value) => void events.push(value),
    isUnsettled: (value) => value === 'unsettled',
    onFailure(error) {
      events.push(`${error}`);
      if (stopsAtFailure) feed.stop();
    },
    onRecovery: () => void events.push('recovery'),
  });
  for (const step of steps.split(' ')) {
    if (/^\d+$/.test(step)) await advance(Number(step));
    else if (step === 'refresh' || step === 'stop') feed[step]();
    else {
      const isNewest = step.startsWith('newest=');
      const request = isNewest ? requests.pop() : requests.shift();
      if (step === 'lost') request?.reject('lost');
      else request?.resolve(step.replace('newest=', ''));
      await settle();
    }
  }
  return { events: events.join(' '), asked };
}

describe('a feed', () => {
  it.each([
    ['asks once at a time', 'refresh 60000', '', 1],
    ['waits three seconds while it is unsettled', 'refresh unsettled 2999', 'unsettled', 1],
    ['asks again until it is settled', 'refresh unsettled 3000 settled 60000', 'unsettled settled', 2],
    ['has one timer', 'refresh unsettled refresh unsettled 3000', 'unsettled unsettled', 3],
    ['ignores an overtaken response', 'refresh refresh newest=newer older 60000', 'newer', 2],
    ['ignores an overtaken failure', 'refresh refresh newest=newer lost 60000', 'newer', 2],
    ['waits ten seconds after a failure', 'refresh lost 9999', 'lost', 1],
    ['reports the first of several failures', 'refresh lost 10000 lost 10000', 'lost', 3],
    ['reports the recovery', 'refresh lost 10000 settled', 'lost settled recovery', 2],
    ['reports the next failure', 'refresh lost refresh ok refresh lost', 'lost ok recovery lost', 3],
    ['asks no more after it was stopped', 'refresh unsettled refresh stop late 60000', 'unsettled', 2],
    ['has forgotten its failure when it was stopped', 'refresh lost stop refresh ok 60000', 'lost ok', 2],
  ])('%s: %s', async (_, steps, events, asked) => {
    expect(await runFeed(steps)).toEqual({ events, asked });
  });

  it('may be stopped by the function that it reports a failure to', async () => {
    expect(await runFeed('refresh lost 60000', true)).toEqual({ events: 'lost', asked: 1 });
  });
});
