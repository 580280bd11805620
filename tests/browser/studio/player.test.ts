import { expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium } from '../chromium.ts';
import { type Listener, listenThroughEverything } from '../engines/listening.ts';
import { isHeard, waveformIsDrawn } from './media.ts';
import { openStudio, type Studio } from './page.ts';

function stateOf({ audio }: Studio) {
  return audio.evaluate(({ currentTime, paused, muted, volume }: HTMLAudioElement) => ({
    ...{ paused, muted, volume: Math.round(volume * 100) },
    at: Math.round(currentTime),
  }));
}

/** Clicks in the middle of the waveform, and gives the response to a request for such a range of the file. */
async function seekToMiddle({ page, slider }: Studio, from: RegExp) {
  const response = page.waitForResponse(
    (response) =>
      response.url().endsWith('/content') && from.test(response.request().headers()['range'] ?? ''),
  );
  await slider.click();
  return response;
}

/** Removes or counts the outlines that the browser keeps. */
function outlines({ page }: Studio, action: 'clear' | 'count'): Promise<unknown> {
  return page.evaluate(
    (action) =>
      new Promise((resolve) => {
        const opening = indexedDB.open('studio');
        opening.addEventListener('success', () => {
          const request = opening.result.transaction('peaks', 'readwrite').objectStore('peaks')[action]();
          request.addEventListener('success', () => resolve(request.result));
        });
      }),
    action,
  );
}

/** For each waveform that the page fetches from now on: how urgently, and whether the player had the whole track. */
function watchFetches({ page }: Studio) {
  return page.evaluateHandle(() => {
    const found: (string | boolean | undefined)[][] = [];
    const original = globalThis.fetch;
    globalThis.fetch = Object.assign((input: RequestInfo | URL, init?: RequestInit) => {
      const audio = document.querySelector('audio');
      const end = audio && audio.buffered.length > 0 ? audio.buffered.end(0) : 0;
      if (String(input).endsWith('/content'))
        found.push([init?.priority, end > 0 && end >= (audio?.duration ?? 0) - 0.3]);
      return original(input, init);
    }, original);
    return found;
  });
}

/** What the page has asked the device to call. */
declare const mediaHandlers: Map<string, (details: { action: string; seekTime?: number }) => void>;

function pressMediaKey({ page }: Studio, action: string, seekTime?: number): Promise<void> {
  return page.evaluate(
    ([action, seekTime]) =>
      mediaHandlers.get(action)?.({ action, ...(seekTime !== undefined && { seekTime }) }),
    [action, seekTime] as const,
  );
}

describeInChromium('a complete track in the player', (visit) => {
  it('is heard, with a waveform that is fetched once in this browser, after the sound, and forgotten at sign-out', async () => {
    await using studio = await openStudio(visit);
    await studio.generate({ seconds: 20 });
    await waveformIsDrawn(studio);
    await outlines(studio, 'clear');
    for (const expected of [[['low', true]], []]) {
      await studio.page.reload();
      const fetched = await watchFetches(studio);
      await studio.press(english.play, studio.tracks.first());
      await isHeard(studio);
      await waveformIsDrawn(studio);
      expect(await fetched.jsonValue()).toEqual(expected);
    }
    await studio.signOut();
    expect(await outlines(studio, 'count')).toBe(0);
  });

  it('is a stream until it has ended, and then a file that can be searched; the browser may want a press', async () => {
    await using studio = await openStudio(visit);
    await studio.generate({ seconds: 10 });
    await studio.playsToEnd();
    const sources = await studio.loads();
    await studio.audio.evaluate((audio: HTMLAudioElement) => {
      audio.play = () => {
        Reflect.deleteProperty(audio, 'play');
        return Promise.reject(new DOMException('', 'NotAllowedError'));
      };
    });
    const { slider } = studio;
    const response = await seekToMiddle(studio, /^bytes=\d+-$/);
    expect(response.status()).toBe(206);
    expect(await slider.isEnabled()).toBe(true);
    expect(await stateOf(studio)).toMatchObject({ at: 5, paused: true });
    await studio.press(english.listen);
    await studio.shows(english.pressListen);
    await studio.press(english.listen);
    await studio.hides(english.pressListen);
    await studio.playsToEnd();
    expect(await sources()).toEqual([true]);
  });

  it('plays on when it is chosen again, and as the file when its stream fails', async () => {
    await using studio = await openStudio(visit);
    await studio.generate({ seconds: 20 });
    await studio.playsBeyond(0.3);
    const sources = await studio.loads();
    await studio.press(english.pauseTrack, studio.tracks.first());
    await studio.press(english.play, studio.tracks.first());
    await studio.playsBeyond(0.5);
    expect(await sources()).toEqual([]);
    // The browser could not go on with its source.
    await studio.audio.evaluate((audio) => void audio.dispatchEvent(new Event('error')));
    await studio.playsBeyond(0.7);
    expect(await sources()).toEqual([true]);
    expect(await studio.page.getByText(english.notPlayable).count()).toBe(0);
  });

  it('is requested from the middle on when a person seeks there while it plays', async () => {
    await using studio = await openStudio(visit);
    const seconds = 150;
    await studio.generate({ seconds });
    await studio.playsBeyond(0.1);
    const response = await seekToMiddle(studio, /^bytes=[1-9]\d*-$/);
    const total = 44 + seconds * 48_000;
    const range = new RegExp(`^bytes [1-9]\\d*-${total - 1}/${total}$`);
    expect([response.status(), response.headers()['content-range']]).toEqual([
      206,
      expect.stringMatching(range),
    ]);
    await studio.playsBeyond(seconds / 2 + 1);
  });

  it('says that it does not play, and loads again on request', async () => {
    await using studio = await openStudio(visit);
    const { network } = studio.world;
    await studio.generate();
    await studio.page.reload();
    await studio.button(english.play, studio.tracks.first()).waitFor();
    studio.visitor.tolerateProblem(/ERR_/);
    network.cut();
    await studio.press(english.play, studio.tracks.first());
    await studio.shows(english.notPlayable);
    network.repair();
    await studio.press(english.listen);
    await studio.playsBeyond(0.3);
    await studio.hides(english.notPlayable);
  });

  it('goes on through seeks, an expired token, a restart of the gateway and a pause', async () => {
    await using studio = await openStudio(visit, { isGatewayProcess: true });
    const { page, visitor, world } = studio;
    // Of slices without a valid token, and of the restart.
    visitor.tolerateProblem(/ERR_|status of 401/);
    const call: Listener['call'] = async (run, ...args) => {
      const expression = `(${run})(...${JSON.stringify(args)})`;
      return JSON.parse(await page.evaluate(`(async () => JSON.stringify(await ${expression}) ?? 'null')()`));
    };
    await listenThroughEverything({ call }, world, true);
  });
});

describeInChromium('the controls of the player', (visit) => {
  it('are Space and the arrows, except where these keys are typed, and a volume that the browser remembers', async () => {
    await using studio = await openStudio(visit);
    const { page, audio, prompt } = studio;
    await studio.generate({ seconds: 30 });
    await studio.playsBeyond(0.1);
    await page.evaluate(() => document.activeElement instanceof HTMLElement && document.activeElement.blur());
    await page.keyboard.press('Space');
    await studio.button(english.listen).waitFor();
    await audio.evaluate((element: HTMLAudioElement) => {
      element.currentTime = 1;
    });
    for (const _ of [6, 11]) await page.keyboard.press('ArrowRight');
    expect(await stateOf(studio)).toMatchObject({ at: 11, paused: true });
    await studio.slider.focus();
    await page.keyboard.press('ArrowLeft');
    expect((await stateOf(studio)).at).toBe(6);
    await page.keyboard.press('Space');
    await studio.button(english.pause).waitFor();
    await prompt.fill('a');
    for (const key of ['Space', 'ArrowLeft', 'b']) await page.keyboard.press(key);
    expect(await prompt.inputValue()).toBe('ab ');
    expect((await stateOf(studio)).paused).toBe(false);

    const volume = page.getByRole('slider', { name: english.volume });
    await volume.focus();
    for (const _ of [95, 90]) await page.keyboard.press('ArrowDown');
    await studio.press(english.mute);
    expect(await stateOf(studio)).toMatchObject({ volume: 90, muted: true });
    await studio.press(english.unmute);
    await page.reload();
    await studio.press(english.play, studio.tracks.first());
    expect(await volume.inputValue()).toBe('0.9');
    expect(await stateOf(studio)).toMatchObject({ volume: 90, muted: false });
  });

  it('are in the rows, beside the track, on the lock screen and on the keys for media', async () => {
    await using studio = await openStudio(visit);
    const { page, visitor, tracks } = studio;
    await visitor.context.addInitScript(() => {
      const handlers = new Map<string, unknown>();
      Object.assign(globalThis, { mediaHandlers: handlers });
      navigator.mediaSession.setActionHandler = (action, handler) => void handlers.set(action, handler);
    });
    await studio.reload();
    const plays = async (track: string) => {
      const isShown = (track: string) =>
        document.title === `▶ ${track} – Music Studio` && navigator.mediaSession.metadata?.title === track;
      await page.waitForFunction(isShown, track);
      expect(await studio.region(english.player).locator('.title').textContent()).toBe(track);
    };
    await studio.generate({ prompt: 'Rain', seconds: 30 });
    await studio.press(english.pause);
    await studio.generate({ prompt: 'Snow', seconds: 30 });
    await plays('Snow');
    await studio.press(english.pauseTrack, tracks.first());
    await studio.button(english.listen).waitFor();
    expect(await page.title()).toBe(english.title);
    await studio.press(english.play, tracks.first());
    await studio.press(english.next);
    await plays('Rain');
    await studio.button(english.pauseTrack, tracks.nth(1)).waitFor();
    await studio.button(english.play, tracks.nth(0)).waitFor();
    // The list begins again after its end.
    await pressMediaKey(studio, 'nexttrack');
    await plays('Snow');
    await studio.playsBeyond(0.1);
    await pressMediaKey(studio, 'pause');
    await pressMediaKey(studio, 'seekto', 22);
    await pressMediaKey(studio, 'seekbackward');
    expect(await stateOf(studio)).toMatchObject({ at: 12, paused: true });
    await pressMediaKey(studio, 'play');
    await studio.button(english.pause).waitFor();
    // Far from the beginning, the first press leads there.
    await studio.press(english.previous);
    expect((await stateOf(studio)).at).toBeLessThan(3);
    await plays('Snow');
    await studio.press(english.previous);
    await plays('Rain');
    await studio.signOut();
    expect(await page.evaluate(() => navigator.mediaSession.metadata)).toBeNull();
  });
});
