import { expect, it } from 'bun:test';
import { wavSize } from '../../../src/demo/sandbox/audio/wav.ts';
import { english } from '../../../src/demo/studio/english.ts';
import { eventually } from '../../support/eventually.ts';
import { describeWith } from '../../support/requirements.ts';
import { startDemoWorld } from '../demo-world.ts';
import { A_MINOR, recordTune } from '../recording.ts';
import { chromium } from './chromium.ts';
import { firefox } from './firefox.ts';
import { listenThroughEverything } from './listening.ts';
import { type Person, personWith } from './person.ts';
import { webkit } from './webkit.ts';

const TUNE = recordTune({ notes: A_MINOR, bpm: 90, channels: 1, bits: 8, rate: 8_000 });
const BALANCE = 1_000;
const SECONDS = 14;

/** Waits until the Studio knows the person, what can be ordered, and how to play it while it arrives. */
async function isSignedIn(person: Person): Promise<void> {
  await person.sees('Ada');
  await person.until('the models', () => document.querySelector('select [value^="sandbox"]') !== null);
  await person.until('the service worker', () => navigator.serviceWorker.controller !== null);
  // A low window folds them away.
  await person.call(() => document.querySelector('details.options')?.setAttribute('open', ''));
}

async function signsIn(person: Person): Promise<void> {
  await person.presses(english.signIn);
  await person.types('Name', 'Ada');
  await person.presses('Sign in');
  await isSignedIn(person);
}

/** What the dialogue of the browser does, which no script can use; runs in the page. Returns whether it was there. */
function chooseFile(name: string, base64: string): boolean {
  const input = document.querySelector<HTMLInputElement>('input[type="file"]');
  if (!input || input.closest('[hidden]') !== input) return false;
  const chosen = new DataTransfer();
  chosen.items.add(new File([Uint8Array.from(atob(base64), (byte) => byte.charCodeAt(0))], name));
  input.files = chosen.files;
  return input.dispatchEvent(new Event('change'));
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

    it('sends a recording, and sees how far it is', async () => {
      await using world = await startDemoWorld();
      await using person = personWith(await engine.launch());
      await person.open(world.studioUrl);
      await signsIn(person);
      const adding = world.gate.hold('POST /v1/music/references');
      await person.until(english.chooseFile, chooseFile, 'tune.wav', TUNE.toString('base64'));
      await adding.arrived;
      await person.until('the end of the bar', () => document.querySelector('progress')?.position === 1);
      await person.sees(english.listening.replace('{name}', 'tune.wav'));
      adding.release();
      await person.sees(english.recordingAdded.replace('{name}', 'tune.wav'));
      await person.sees('A minor 90 beats a minute');
    }, 60_000);

    it(
      'signs in to the studio, plays a track while it arrives and a long file, whatever happens to them, and signs out',
      async () => {
        await using world = await startDemoWorld({ startingBalance: BALANCE });
        await using person = personWith(await engine.launch());
        await person.open(world.studioUrl);
        await signsIn(person);
        expect(await person.call(() => document.cookie)).toBe('');
        await person.open(world.studioUrl);
        await isSignedIn(person);

        const audio = world.gate.holdAudio(wavSize(SECONDS * 1_000) / 2);
        await person.types(english.prompt, 'Waves under a pier');
        await person.types(english.length, String(SECONDS));
        await person.presses(english.generate);
        await playsBeyond(person, 0.3);
        await person.sees(english.arriving);
        world.network.cut();
        await person.sees(english.reconnecting);
        // Chromium plays nothing of the last six seconds before it has more.
        await playsBeyond(person, SECONDS / 2 - 6);
        await world.restartGateway();
        world.network.repair();
        audio.release();
        await person.sees(english.complete);
        await playsBeyond(person, SECONDS / 2 + 1);
        await person.sees(`${BALANCE - 2 * SECONDS} ${english.balance}`);
        expect(world.upstream.counts().generations).toBe(1);

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
