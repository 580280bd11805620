import { expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { describeWith } from '../../support/requirements.ts';
import { startDemoWorld } from '../demo-world.ts';
import { ORDER, undisturbedHash, watchPieces } from '../pieces.ts';
import type { Engine } from './browser-engine.ts';
import { firefox } from './firefox.ts';
import { listenThroughEverything } from './listening.ts';
import { Person } from './person.ts';
import { webkit } from './webkit.ts';

/** A browser starts slowly on a machine that does many other things. */
const TIMEOUT_MS = 120_000;
/** The gateway's cookies are not Secure, because WebKitGTK takes no Secure cookie over http. */
const GATEWAY = { isGatewayProcess: true, environment: { NODE_ENV: '' } };

/** The Studio in a world of its own, with the page of a person who has gone through the identity provider's form. */
async function openStudio(engine: Engine) {
  await using stack = new AsyncDisposableStack();
  const world = stack.use(await startDemoWorld({ startingBalance: 1_000, ...GATEWAY }));
  const person = stack.use(new Person(await engine.launch()));
  await person.open(world.studioUrl);
  await person.clicks(english.signIn);
  await person.types('Name', 'Ada');
  await person.clicks('Sign in');
  await isSignedIn(person);
  const opened = stack.move();
  return { world, person, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

/** Waits until the Studio knows the person, what can be ordered, and how to play it while it arrives. */
async function isSignedIn(person: Person): Promise<void> {
  await person.sees('Ada');
  await person.until('the models', () => document.querySelector('select [value^="sandbox"]') !== null);
  await person.until('the service worker', () => navigator.serviceWorker.controller !== null);
}

async function order(person: Person, { prompt, seconds }: typeof ORDER): Promise<void> {
  await person.types(english.prompt, prompt);
  await person.types(english.length, String(seconds));
  await person.clicks(english.generate);
}

/** Waits until the player has got beyond so many seconds, and returns the path of what it plays. */
function playsBeyond(person: Person, seconds: number): Promise<string> {
  const isBeyond = (seconds: number) => {
    const audio = document.querySelector('audio');
    return audio && audio.currentTime > seconds ? new URL(audio.src).pathname : undefined;
  };
  return person.until(`second ${seconds} of the track`, isBeyond, seconds);
}

for (const engine of [firefox, webkit]) {
  describeWith(engine.requirements, `the studio in ${engine.name}`, () => {
    const options = { timeout: TIMEOUT_MS, retry: engine.playbackRetries };

    it(
      'signs in, plays a track while it arrives, receives the rest from a restarted gateway, and signs out',
      async () => {
        await using studio = await openStudio(engine);
        const { person, world } = studio;
        expect(await person.call(() => document.cookie)).toBe('');
        await person.open(world.studioUrl);
        await isSignedIn(person);

        await person.call(watchPieces);
        const audio = world.gate.holdAudio(ORDER.bytes / 2);
        await order(person, ORDER);
        expect(await playsBeyond(person, 0.3)).toStartWith('/live/');
        await person.sees(english.arriving);
        world.network.reset();
        await world.gateway.restart();
        audio.release();
        await person.sees(english.complete);
        expect(await person.call(() => watched.hash())).toBe(undisturbedHash());
        expect(await playsBeyond(person, ORDER.seconds / 2 + 1)).toStartWith('/live/');
        await person.sees(`${1_000 - ORDER.credits} ${english.balance}`);
        expect(world.upstream.counts().generations).toBe(1);

        await person.clicks(english.signOut);
        await person.sees(english.welcome);
        expect(world.gate.calls).toContain('POST /v1/auth/logout');
        await person.open(world.studioUrl);
        await person.sees(english.welcome);
      },
      options,
    );

    it(
      'plays a long file through seeks, an expired token, a restart of the gateway and a pause',
      async () => {
        await using studio = await openStudio(engine);
        const { person, world } = studio;
        // Sound needs a click.
        await person.clicks(english.prompt);
        await listenThroughEverything(person, world, engine.canSeek);
      },
      options,
    );
  });
}
