import { expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { eventually } from '../../support/eventually.ts';
import { describeWith } from '../../support/requirements.ts';
import { type DemoWorld, startDemoWorld } from '../demo-world.ts';
import { chromium } from './chromium.ts';
import { firefox } from './firefox.ts';
import { listenThroughEverything } from './listening.ts';
import { type Person, personWith } from './person.ts';
import { ORDER, undisturbedHash, watchPieces } from './pieces.ts';
import { webkit } from './webkit.ts';

const BALANCE = 1_000;

/** Waits until the Studio knows the person, what can be ordered, and how to play it while it arrives. */
async function isSignedIn(person: Person): Promise<void> {
  await person.sees('Ada');
  await person.until('the models', () => document.querySelector('select [value^="sandbox"]') !== null);
  await person.until('the service worker', () => navigator.serviceWorker.controller !== null);
}

/** Waits until the player has got beyond so many seconds of a stream. */
async function playsBeyond(person: Person, seconds: number): Promise<void> {
  const pathBeyond = (seconds: number) => {
    const audio = document.querySelector('audio');
    return audio && audio.currentTime > seconds ? new URL(audio.src).pathname : undefined;
  };
  const path = await person.until(`second ${seconds} of the track`, pathBeyond, seconds);
  expect(path).toStartWith('/live/');
}

/** Moves back and to the end in a track of which the first half is there. */
async function movesInArriving(person: Person, world: DemoWorld): Promise<void> {
  const half = ORDER.seconds / 2;
  const audio = world.gate.holdAudio(ORDER.bytes / 2);
  await person.types(english.prompt, 'Snow');
  await person.presses(english.generate);
  await person.sees(english.arriving);
  await person.until('its share', () => document.querySelector('[data-known]') !== null);
  for (const [seconds, reached] of [
    [2, 2],
    [ORDER.seconds, half],
    [1, 1],
  ] as const) {
    const moved = await person.call((seconds) => {
      const slider = document.querySelector<HTMLInputElement>('[data-part=position]');
      if (!slider) return;
      slider.value = String(seconds);
      for (const type of ['input', 'change']) slider.dispatchEvent(new Event(type));
      return slider.valueAsNumber;
    }, seconds);
    expect(moved).toBe(reached);
    if (reached < half) await playsBeyond(person, 0.3);
  }
  audio.release();
  await person.sees(english.complete);
}

const PAGE = `<!doctype html><link rel="icon" href="data:,"><audio src="/audio" preload="auto"></audio>
  <script>fetch('/read'); fetch('/write', { method: 'POST' })</script>`;

for (const engine of [chromium, firefox, webkit])
  describeWith(engine.requirements, `a person with ${engine.name}`, () => {
    // What the gateway relies on with SAME_ORIGIN: integration/relay/origin-rule.test.ts.
    it('tells a page’s own origin that it comes from there, with an Origin only where it writes', async () => {
      const seen: Record<string, unknown> = {};
      await using server = Bun.serve({
        port: 0,
        hostname: 'localhost',
        fetch({ url, method, headers }) {
          const { pathname } = new URL(url);
          if (pathname === '/') return new Response(PAGE, { headers: { 'content-type': 'text/html' } });
          seen[`${method} ${pathname}`] = [headers.get('origin'), headers.get('sec-fetch-site')];
          return new Response();
        },
      });
      const { origin } = server.url;
      await using person = personWith(await engine.launch());
      await person.open(origin);
      await eventually(() => Object.keys(seen).length === 3, 'all three requests');
      const read = [null, 'same-origin'];
      expect(seen).toEqual({ 'GET /read': read, 'GET /audio': read, 'POST /write': [origin, 'same-origin'] });
    });

    it(
      'signs in to the studio, plays a track while it arrives and a long file, whatever happens to them, and signs out',
      async () => {
        await using world = await startDemoWorld({ startingBalance: BALANCE });
        await using person = personWith(await engine.launch());
        await person.open(world.studioUrl);
        await person.presses(english.signIn);
        await person.types('Name', 'Ada');
        await person.presses('Sign in');
        await isSignedIn(person);
        expect(await person.call(() => document.cookie)).toBe('');
        await person.open(world.studioUrl);
        await isSignedIn(person);

        await person.call(watchPieces);
        const audio = world.gate.holdAudio(ORDER.bytes / 2);
        await person.types(english.prompt, ORDER.prompt);
        await person.types(english.length, String(ORDER.seconds));
        await person.presses(english.generate);
        await playsBeyond(person, 0.3);
        await person.sees(english.arriving);
        world.network.cut();
        await person.sees(english.reconnecting);
        // Chromium plays nothing of the last six seconds before it has more.
        await playsBeyond(person, ORDER.seconds / 2 - 6);
        await world.restartGateway();
        world.network.repair();
        audio.release();
        await person.sees(english.complete);
        expect(await person.call(() => hashOfPieces())).toBe(undisturbedHash());
        await playsBeyond(person, ORDER.seconds / 2 + 1);
        await person.sees(`${BALANCE - ORDER.credits} ${english.balance}`);
        expect(world.upstream.counts().generations).toBe(1);

        // A track that plays would keep the next one from the player.
        await person.presses(english.pause);
        await movesInArriving(person, world);
        await person.presses(english.pause);
        await listenThroughEverything(person, world, engine.canSeek);

        await person.presses(english.signOut);
        await person.sees(english.welcome);
        expect(world.gate.calls).toContain('POST /v1/auth/logout');
        await person.open(world.studioUrl);
        await person.sees(english.welcome);
      },
      { timeout: 120_000, retry: engine.playbackRetries },
    );
  });
