/** What nobody should notice: users who do what users do, at a gateway in the memory of its container. */

import { expect, it } from 'bun:test';
import { startTlsProxy, TLS_PROXIES } from '../../deploy/proxies/tls-proxies.ts';
import { describeWith, itWith, program } from '../../support/requirements.ts';
import { Problems, percentile } from '../report.ts';
import { keepChecking, MEMORY_CGROUP, type Rig, startRig } from '../rig.ts';
import { userOf } from './app.ts';
import { APP_CALLS, EVENTS, endOf, Users } from './users.ts';

/** Users who have not been seen yet, and for whom the upstream takes so long. */
type Newcomers = (role: string, count: number, takesMs: number) => string[];
type Use = (users: Users, newcomers: Newcomers, rig: Rig) => Promise<void>;
type Row = readonly [name: string, calls: number, use: Use];

const CONTAINER_MB = 256;
const PAUSE_MS = 10;
const CREATIONS = '/api/upstream/v1/music/creations';
const REFERENCES = '/api/upstream/v1/references';
const CHANGE = JSON.stringify({ title: 'A title' });
const ONE_MB = 'x'.repeat(1_000_000);
/** A thousand of them arrive within ten seconds. */
const ARRIVALS_APART_MS = 9;
/** Twice as many as there are on a quiet machine. */
const MOST_OPENING = 100;
const MOST_UPLOADING = 50;
const OVER_HTTP2 = 'opens the app of 100 users over HTTP/2, through nginx';
const NGINX = TLS_PROXIES.filter(({ program }) => program === 'nginx');

const ROWS: readonly Row[] = [
  ['makes twenty changes that one user sends at once', 20, one('PATCH', 20, CHANGE)],
  ['responds to ninety reads that one user sends at once', 90, one('GET', 90)],
  ['waits three seconds for the creations of each of 1,000 users', 1000, each(1000, `GET ${CREATIONS}`)],
  [
    'waits three seconds for a change of each of 500 users',
    500,
    each(500, `PATCH ${CREATIONS}/song`, CHANGE),
  ],
  ['opens the app of 400 users at once, whose upstream takes 300 ms', 400 * APP_CALLS, open(400, 300)],
  ['opens the app of 400 users at once, whose upstream takes a second', 400 * APP_CALLS, open(400, 1000)],
  ['keeps 300 event streams open while it responds to 200 other users', 500, listen],
  ['opens the app of 1,000 users, a hundred at a time', 1000 * APP_CALLS, arrive(1000, 0)],
  // Bun reads a megabyte ahead of each body, and 200 at one moment are more than the container has.
  [
    'opens the app of 1,000 users, while 200 others upload a megabyte each, fifty at a time',
    1000 * APP_CALLS + 200,
    arrive(1000, 200),
  ],
];

describeWith([MEMORY_CGROUP], 'a gateway in 256 MB', () => {
  it.each(ROWS)('%s', async (name, calls, use) => {
    await using rig = await startRig(0, CONTAINER_MB);
    await expectServed(rig, name, calls, use);
  });

  for (const { program: name, prepare } of NGINX) {
    itWith([program(name), program('openssl')], OVER_HTTP2, async () => {
      await using rig = await startRig(0, CONTAINER_MB);
      await using proxy = await startTlsProxy(prepare, Number(new URL(rig.gateway.url).port));
      const use: Use = (users, newcomers) => users.openOverHttp2(newcomers('opener', 100, 300));
      await expectServed(rig, OVER_HTTP2, 100 * APP_CALLS, use, proxy.url);
    });
  }
});

/** Twice: a process that has just started knows no endpoint, and compiles its code meanwhile. */
async function expectServed(rig: Rig, name: string, calls: number, use: Use, url = rig.gateway.url) {
  const { gateway } = rig;
  const all = [];
  for (const time of ['cold', 'warm']) {
    const problems = new Problems();
    const newcomers: Newcomers = (role, count, takesMs) =>
      Array.from({ length: count }, (_, index) => userOf(takesMs, `${time}-${role}-${index}`));
    using users = new Users(url);
    const others = keepChecking(gateway.url, problems, PAUSE_MS);
    const killed = await Promise.race([use(users, newcomers, rig), gateway.killed]);
    if (killed !== undefined) problems.add(killed);
    await others[Symbol.asyncDispose]();
    const [p50, p99] = [percentile(others.tookMs, 0.5), percentile(others.tookMs, 0.99)];
    const { endings } = users;
    console.log(name, time, {
      ...endings,
      'p50 ms': p50,
      'p99 ms': p99,
      'MB at peak': gateway.memory.peak(),
    });
    // A figure for the p99 would be about the machine.
    all.push({ time, endings, problems: problems.list(), isSlow: p50 >= 1000 });
    if (killed !== undefined) break;
  }
  const served = { endings: { served: calls }, problems: [], isSlow: false };
  expect(all).toEqual([
    { time: 'cold', ...served },
    { time: 'warm', ...served },
  ]);
}

function one(method: string, count: number, body = ''): Use {
  return (users, newcomers) => {
    const [user = ''] = newcomers('user', 1, 300);
    const call = (_: unknown, id: number) => ({ start: `${method} ${CREATIONS}/song-${id}`, user, body });
    return users.sendAtOnce(Array.from({ length: count }, call));
  };
}

function each(count: number, start: string, body = ''): Use {
  return (users, newcomers) =>
    users.sendAtOnce(newcomers('user', count, 3000).map((user) => ({ start, user, body })));
}

function open(count: number, takesMs: number): Use {
  return (users, newcomers) => users.open(newcomers('opener', count, takesMs));
}

async function listen(users: Users, newcomers: Newcomers, rig: Rig): Promise<void> {
  const listening = newcomers('listener', 300, 300).map((user) => ({ start: EVENTS, user }));
  const streams = await users.connect(listening);
  for (const stream of streams) stream.send();
  await Promise.all(streams.map((stream) => stream.begun));
  const reading = newcomers('reader', 200, 300).map((user) => ({ start: `GET ${CREATIONS}`, user }));
  await users.sendAtOnce(reading);
  await rig.endEvents();
  await Promise.all(streams.map((stream) => users.count(EVENTS, endOf(stream))));
}

/**
 * Whoever uploads comes beside the first of those who open their app. On a machine that is slow or busy, the next one
 * comes later, because the promise is about memory.
 */
function arrive(openers: number, uploaders: number): Use {
  return async (users, newcomers) => {
    const [people, others] = [newcomers('opener', openers, 200), newcomers('uploader', uploaders, 200)];
    const [opening, uploading] = [new Set<Promise<void>>(), new Set<Promise<void>>()];
    for (const [index, user] of people.entries()) {
      await add(opening, MOST_OPENING, users.open([user]));
      const uploader = others[index];
      const call = { start: `POST ${REFERENCES}`, user: uploader ?? '', body: ONE_MB };
      if (uploader !== undefined) await add(uploading, MOST_UPLOADING, users.sendAtOnce([call]));
      await Bun.sleep(ARRIVALS_APART_MS);
    }
    await Promise.all([...opening, ...uploading]);
  };
}

/** Waits until there are fewer than so many. */
async function add(works: Set<Promise<void>>, most: number, work: Promise<void>): Promise<void> {
  works.add(work);
  void work.finally(() => works.delete(work));
  while (works.size >= most) await Promise.race(works);
}
