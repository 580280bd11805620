/** What must work in every engine, as one table of tests. Chromium has all the tests of the Studio and the client. */

import { expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { bundle } from '../../page/client/bundle.ts';
import { ONCE, ORDER, TRACK_BYTES, undisturbedHash } from '../../page/client/recovery-world.ts';
import type { Engine } from '../../support/browser-engine.ts';
import { describeWith } from '../../support/requirements.ts';
import { LONG_SECONDS, listenThroughEverything, SHORTER_SECONDS } from './listening.ts';
import type { ReceivingPage } from './receiving-page.ts';
import {
  canPlayArriving,
  isSignedIn,
  openStudio,
  order,
  playsBeyond,
  STARTING_BALANCE,
  signIn,
} from './studio.ts';

/** Six seconds of the sandbox's audio: enough for each engine to begin. */
const ENOUGH_TO_PLAY = 6 * 48_000;

/** A browser starts slowly on a machine that does many other things. */
export const TIMEOUT_MS = 120_000;

declare const receiving: ReceivingPage;

export function describeSmokeTests(engine: Engine): void {
  describeWith(engine.requirements, `the studio in ${engine.name}`, () => {
    const itPlays = (name: string, test: () => Promise<void>) =>
      it(`plays ${name}`, test, { timeout: TIMEOUT_MS, retry: engine.playbackRetries });

    it(
      'keeps a person signed in with cookies that no script sees, until the sign-out',
      async () => {
        await using studio = await openStudio(engine);
        const { person, world } = studio;
        await signIn(person);
        expect(await person.call(() => document.cookie)).toBe('');
        await person.open(world.studioUrl);
        await isSignedIn(person);

        await person.clicks(english.signOut);
        await person.sees(english.welcome);
        expect(world.gate.calls).toContain('POST /v1/auth/logout');
        await person.open(world.studioUrl);
        await person.sees(english.welcome);
      },
      TIMEOUT_MS,
    );

    itPlays('a track while it arrives', async () => {
      await using studio = await openStudio(engine);
      const { person, world } = studio;
      await signIn(person);
      await canPlayArriving(person);
      const audio = world.gate.holdAudio(ENOUGH_TO_PLAY);
      await order(person);
      expect(await playsBeyond(person, 0.3)).toStartWith('/live/');
      await person.sees(english.arriving);
      audio.release();
      await person.sees(english.complete);
      await playsBeyond(person, 7);
      expect(world.upstream.counts().generations).toBe(1);
    });

    itPlays('a shared track to somebody who has signed out', async () => {
      await using studio = await openStudio(engine);
      const { person } = studio;
      await signIn(person);
      await person.clicks(english.public);
      await order(person);
      await person.sees(english.complete);
      await person.clicks(english.share);
      const link = await person.until('the link', () => {
        const links = document.querySelectorAll('a');
        return [...links].find(({ href }) => href.includes('listen='))?.href;
      });
      await person.clicks(english.signOut);
      await person.sees(english.welcome);

      await person.open(link);
      await person.sees(english.sharedTrack);
      await person.clicks(english.listen);
      expect(await playsBeyond(person, 0.3)).toMatch(/\/public\/.*\/content$/);
    });

    itPlays('a complete track in a private window', async () => {
      await using studio = await openStudio(engine, { isPrivate: true });
      const { person } = studio;
      await signIn(person);
      await order(person);
      await person.sees(english.complete);
      await playsBeyond(person, 0.3);
    });

    it(
      'plays a long track through seeks, an expired token, a restart of the gateway and a pause',
      async () => {
        // Its cookies are not Secure, because WebKitGTK takes no Secure cookie over http.
        const environment = { NODE_ENV: '' };
        await using studio = await openStudio(engine, {
          isGatewayProcess: true,
          startingBalance: 5_000,
          environment,
        });
        const { person, world } = studio;
        await signIn(person);
        await order(person, engine.canSeek ? LONG_SECONDS : SHORTER_SECONDS);
        await person.sees(english.complete);
        await listenThroughEverything(person, world, engine.canSeek);
      },
      { timeout: 600_000, retry: engine.playbackRetries },
    );

    it(
      'receives the bytes of an undisturbed track although the connection is reset in its middle',
      async () => {
        await using studio = await openStudio(engine);
        const { person, world } = studio;
        await signIn(person);
        await person.runs((await bundle("import './tests/browser/engines/receiving-page.ts'")).code);
        const audio = world.gate.holdAudio(TRACK_BYTES / 2);
        const hash = person.call((url, order) => receiving.receive(url, order), world.gatewayUrl, ORDER);
        await person.until('half of the track', (half) => receiving.receivedBytes >= half, TRACK_BYTES / 2);
        world.network.reset();
        audio.release();
        expect(await hash).toBe(undisturbedHash());
        const states = await person.call(() => receiving.states);
        expect(states).toEqual(['waiting', 'arriving', 'recovering', 'arriving', 'complete']);
        expect(world.upstream.counts().generations).toBe(1);
        await person.open(world.studioUrl);
        await person.sees(`${STARTING_BALANCE - ONCE.credits} ${english.balance}`);
      },
      TIMEOUT_MS,
    );
  });
}
