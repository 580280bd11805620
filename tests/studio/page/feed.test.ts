import { expect, it } from 'bun:test';
import { createFeed } from '../../../src/demo/studio/feed.ts';
import { fakeTime, settle } from '../../client/fake-time.ts';

/**
 * Runs a feed through steps: milliseconds that pass, and otherwise what happens. Any other word is a response to the
 * oldest request without one, `newest=` one to the newest; `lost` is none, and `fatal` one after which the feed is
 * stopped. Returns what the feed has reported, and how often it has asked.
 */
async function runFeed(steps: string) {
  const advance = fakeTime();
  const requests: PromiseWithResolvers<string>[] = [];
  const events: string[] = [];
  let asked = 0;
  const feed = createFeed({
    load() {
      asked++;
      requests.push(Promise.withResolvers());
      return requests.at(-1)?.promise ?? Promise.reject();
    },
    show: (value) => void events.push(value),
    isUnsettled: (value) => value === 'unsettled',
    onFailure(error) {
      events.push(`${error}`);
      if (error === 'fatal') feed.stop();
    },
    onRecovery: () => void events.push('recovery'),
  });
  const respond = (response: string, request?: PromiseWithResolvers<string>) => {
    if (!request) throw new Error(`There is no request for “${response}”`);
    if (/lost|fatal/.test(response)) request.reject(response);
    else request.resolve(response);
    return settle();
  };
  for (const step of steps.split(' ')) {
    const [response = '', isNewest] = step.split('=').toReversed();
    if (/^\d+$/.test(step)) await advance(Number(step));
    else if (step === 'refresh' || step === 'stop') feed[step]();
    else await respond(response, isNewest ? requests.pop() : requests.shift());
  }
  return { events: events.join(' '), asked };
}

it.each([
  ['asks once at a time', 'refresh 60000', '', 1],
  ['asks again until it is settled', 'refresh unsettled 3000 settled 60000', 'unsettled settled', 2],
  ['has one timer', 'refresh unsettled refresh unsettled 3000', 'unsettled unsettled', 3],
  ['ignores an overtaken response', 'refresh refresh newest=newer older 60000', 'newer', 2],
  ['ignores an overtaken failure', 'refresh refresh newest=newer lost 60000', 'newer', 2],
  ['reports the first of several failures', 'refresh lost 10000 lost 10000', 'lost', 3],
  ['reports the recovery', 'refresh lost 10000 settled', 'lost settled recovery', 2],
  ['asks no more after it was stopped', 'refresh unsettled refresh stop late 60000', 'unsettled', 2],
  ['has forgotten its failure when it was stopped', 'refresh lost stop refresh ok 60000', 'lost ok', 2],
  ['may be stopped where it reports a failure', 'refresh fatal 60000', 'fatal', 1],
])('a feed %s: %s', async (_, steps, events, asked) => {
  expect(await runFeed(steps)).toEqual({ events, asked });
});
