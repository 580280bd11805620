import { expect, it } from 'bun:test';
import { startTlsProxy, TLS_PROXIES } from '../../deploy/proxies/tls-proxies.ts';
import { eventually } from '../../support/eventually.ts';
import { describeWith, itWith, program } from '../../support/requirements.ts';
import { request } from '../../support/world.ts';
import { Client } from '../client.ts';
import { userOf } from '../ordinary/app.ts';
import { APP_CALLS, Users } from '../ordinary/users.ts';
import { cookieOf } from '../raw-client.ts';
import { Problems, percentile } from '../report.ts';
import { checkSession, keepChecking, MEMORY_CGROUP, type Rig, startProgram, startRig } from '../rig.ts';
import { type Load, runStreams } from '../streams.ts';
import { CHEAP } from '../upstream.ts';
import { WORKS, type Works } from '../works.ts';
import { ATTACKS, type AttackName } from './attackers.ts';

const CONTAINER_MB = 256;
/** Longer than a response that nobody reads can still take memory. */
const TRACK_BYTES = 20_000_000;
const GENERATIONS = 8;
const GENERATIONS_APART_MS = 400;
/** HAProxy allows a client 100 requests a second. */
const PAUSE_MS = 40;
/** If the facts of all of them stayed, the gateway would not survive. */
const REFRESHES = 35_000;
const VICTIMS = 3;
const CHEAP_EXPORTS = 100;
const OPENERS = 200;

const ALONE = ATTACKS.flatMap(([name, alone]) => (alone > 0 ? [name] : []));
/** What happens during an attack; during the others, the gateway reads ahead. */
const MEANWHILE: Partial<Record<AttackName, (rig: Rig) => Promise<void>>> = {
  'refreshes of other tokens again and again': refreshAndStopReading,
  'made-up sign-outs': signOutMeanwhile,
};

/** What has killed a gateway, or has denied it to others. The users beside it, and those who come after a second, are served. */
function attack(works: Works, trackBytes = 3_000_000): Load {
  return { works, newcomers: { paid: 5 }, seconds: 1, trackBytes };
}

/** What happens before an attack. */
const BEFORE: Partial<Record<AttackName, (rig: Rig) => Promise<void>>> = {
  'unread exports in two waves of an endpoint that has been cheap so far': exportCheaply,
};

const BESIDE_USERS: Readonly<Record<string, Load>> = {
  'strangers stop in a hundred public tracks': attack({ publicPlayer: 100 }, 10_000_000),
  'users stop in thirty generations that are made already': attack({ deadGeneration: 30 }, 10_000_000),
  'a user with six sign-ins stops 494 players, and reads on in all at once': attack({ sixfoldPlayer: 494 }),
  'large sign-ins are completed together': attack({ largeBody: 22 }),
  'calls with long heads wait': attack({ longHead: 3000 }),
  'a user with ten sign-ins stops players and generations, and sends bodies that stall': attack({
    ...{ tenfoldPlayer: 200, tenfoldGeneration: 18, stalledBody: 100 },
  }),
  'a user with twelve sign-ins starts finished generations with each': attack({ twelvefoldGeneration: 36 }),
  'two hundred of them hear generations while they are made': {
    works: { heardBriefly: 200 },
    seconds: 0,
    trackBytes: 100_000,
  },
  'four thousand tabs check their sessions at once': { works: { check: 4000 }, seconds: 0, atOnce: 4000 },
};

describeWith([MEMORY_CGROUP], 'a gateway in 256 MB', () => {
  for (const proxy of [undefined, ...TLS_PROXIES]) {
    const name = proxy ? `through ${proxy.program}` : 'directly';
    const needs = proxy ? [program(proxy.program), program('openssl')] : [];
    itWith(needs, `serves its users while everything is tried at once, ${name}`, async () => {
      await using stack = new AsyncDisposableStack();
      const settings = { MAX_IN_FLIGHT_PER_SESSION: '10' };
      const rig = stack.use(await startRig(TRACK_BYTES, CONTAINER_MB, settings));
      const { port } = new URL(rig.gateway.url);
      const way = proxy && stack.use(await startTlsProxy(proxy.prepare, Number(port)));
      const { problems, checks } = await endure(rig, way?.url ?? rig.gateway.url);
      const [p50, p99] = [percentile(checks, 0.5), percentile(checks, 0.99)];
      console.log(`siege ${name}: ${checks.length} checks, p50 ${p50} ms, p99 ${p99} ms`);
      expect(problems).toEqual([]);
    });
  }

  it('serves its users while everything is tried at once, and 200 more open the app', async () => {
    await using rig = await startRig(TRACK_BYTES, CONTAINER_MB, { MAX_IN_FLIGHT_PER_SESSION: '10' });
    const { url } = rig.gateway;
    using users = new Users(url);
    const opening = users.open(Array.from({ length: OPENERS }, (_, index) => userOf(300, `opener-${index}`)));
    const { problems } = await endure(rig, url);
    await opening;
    expect({ problems, endings: users.endings }).toEqual({
      problems: [],
      endings: { served: OPENERS * APP_CALLS },
    });
  });

  it.each(ALONE)('is not harmed by %s', async (name) => {
    await using rig = await startRig(TRACK_BYTES, CONTAINER_MB);
    const { gateway } = rig;
    await BEFORE[name]?.(rig);
    const beforeMb = gateway.memory.now();
    await using _ = await startProgram('siege/attackers.ts', gateway.url, name);
    const during = takeEffect(rig, beforeMb).then(() => MEANWHILE[name]?.(rig) ?? readAhead());
    expect(await Promise.race([during, gateway.killed])).toBeUndefined();
    await checkSession(gateway.url);
    console.log(`${name}: ${gateway.memory.peak()} MB at its peak`);
  });

  it.each(Object.entries(BESIDE_USERS))('serves its users while %s', async (name, load) => {
    const { figures, problems } = await runStreams({ ...load, memoryMb: CONTAINER_MB });
    console.log(name, figures);
    expect(problems).toEqual([]);
  });
});

/** Users pay for generations and check their sessions, until the attackers have been there for seconds. */
async function endure({ gateway }: Rig, url: string) {
  const problems = new Problems();
  await checkSession(url, 20);
  const attackers = await startProgram('siege/attackers.ts', url);
  const checking = keepChecking(url, problems, PAUSE_MS);
  const paying = Array.from({ length: GENERATIONS }, (_, index) => pay(new URL(url), index, problems));
  const killed = await Promise.race([Promise.all(paying), gateway.killed]);
  if (typeof killed === 'string') problems.add(killed);
  await checking[Symbol.asyncDispose]();
  await attackers[Symbol.asyncDispose]();
  const isCalm = async () => {
    await Bun.sleep(PAUSE_MS);
    await problems.during('a session check afterwards', checkSession(url));
    return gateway.memory.now() < CONTAINER_MB / 2;
  };
  const calm = eventually(isCalm, `less than ${CONTAINER_MB / 2} MB`, 30_000);
  await problems.during('the memory afterwards', calm);
  return { checks: checking.tookMs, problems: problems.list() };
}

/** A user with whom no attacker shares a session has a generation made, and hears it. */
async function pay(url: URL, index: number, problems: Problems): Promise<void> {
  await Bun.sleep(index * GENERATIONS_APART_MS);
  using client = new Client(WORKS.paid.plan(index, []));
  await client.connect(url);
  client.send();
  await client.ended;
  if (client.ending !== 'whole') problems.add(`generation ${index}: ${client.ending}, ${client.seen}`);
}

/** Until the price of the endpoint has fallen as far as it can. */
async function exportCheaply({ gateway }: Rig): Promise<void> {
  for (let count = 0; count < CHEAP_EXPORTS; count++) {
    const options = { method: 'POST', ...cookieOf(`${CHEAP}-${count}`), json: {} };
    expect((await request(`${gateway.url}/api/upstream/v1/export`, options)).status).toBe(200);
  }
}

/** An attack that is refused as a mistake would take nothing, and show nothing. */
async function takeEffect({ gateway }: Rig, beforeMb: number): Promise<void> {
  await eventually(() => gateway.memory.peak() > 1.2 * beforeMb, 'the attack to take memory', 60_000);
}

/** Until all that the gateway and Bun read ahead has arrived. */
function readAhead(): Promise<void> {
  return Bun.sleep(1500);
}

/** The facts of the refreshes must not take the memory that the ledger gives to others. */
async function refreshAndStopReading(rig: Rig): Promise<void> {
  const areMade = async () => (await rig.state()).refreshes > REFRESHES;
  await eventually(areMade, `${REFRESHES} refreshes`, 140_000);
  const exports: AttackName = 'exports of two sessions that nobody reads';
  await using _ = await startProgram('siege/attackers.ts', rig.gateway.url, exports);
  await readAhead();
}

/** Each user is signed out at the upstream, although strangers want the same. */
async function signOutMeanwhile({ gateway, state }: Rig): Promise<void> {
  for (let victim = 0; victim < VICTIMS; victim++) {
    await request(`${gateway.url}/api/auth/logout`, { method: 'POST', ...cookieOf(`victim-${victim}`) });
    expect((await state()).signedOut).toContain(`victim-${victim}-refresh`);
  }
}
