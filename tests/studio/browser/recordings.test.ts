import { expect, it } from 'bun:test';
import { hear } from '../../../src/demo/sandbox/recording/hearing.ts';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium } from '../chromium.ts';
import { A_MINOR, recordTune } from '../recording.ts';
import { openStudio } from './page.ts';

/** More than the gateway keeps, so that it is streamed. */
const HUMMING = {
  name: 'humming.wav',
  mimeType: 'audio/wav',
  buffer: recordTune({ notes: A_MINOR, bpm: 104, seconds: 15 }),
};
const ADD = 'POST /v1/music/references';

async function openWithRecordings() {
  const studio = await openStudio();
  const { page, world } = studio;
  const group = page.getByRole('group', { name: english.startFrom });
  const said = (text: string) => studio.says(text.replace('{name}', HUMMING.name));
  return {
    ...studio,
    group,
    said,
    bar: page.getByRole('progressbar'),
    recording: group.getByRole('radio', { name: HUMMING.name }),
    /** Opens the dialogue by the keyboard, and takes the file. */
    async choose(file = HUMMING) {
      const chooser = page.waitForEvent('filechooser');
      await studio.button(english.chooseFile).press('Enter');
      await (await chooser).setFiles(file);
    },
    /** Sends so slowly that a second passes, and waits until some has been sent. */
    async chooseSlowly() {
      const devtools = await page.context().newCDPSession(page);
      const slow = { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: 1e6 };
      await devtools.send('Network.emulateNetworkConditions', slow);
      await this.choose();
      await page.waitForFunction(() => {
        const { position = 0 } = document.querySelector('progress') ?? {};
        return position > 0.1 && position < 0.9;
      });
      return () => devtools.send('Network.emulateNetworkConditions', { ...slow, uploadThroughput: -1 });
    },
    /** What is heard in the newest track. */
    async newestTrack() {
      const options = { headers: { origin: world.studioUrl } };
      const url = `${world.gatewayUrl}/api/upstream/v1/music/creations`;
      const { data } = await (await page.request.get(url, options)).json();
      return hear(await (await page.request.get(`${url}/${data[0].id}/content`, options)).body());
    },
    [Symbol.asyncDispose]: () => studio[Symbol.asyncDispose](),
  };
}

describeInChromium('a recording in the studio', () => {
  it('is chosen by the keyboard, sent, and listed; the next track takes its key and tempo, until it is deleted', async () => {
    await using studio = await openWithRecordings();
    const { page, gate, visitor, bar, group, recording, said } = studio;
    const adding = gate.hold(ADD);
    const fast = await studio.chooseSlowly();
    await said(english.sending);
    await group.getByText(/\d MB of 2\.6 MB/).waitFor();
    await fast();
    await adding.arrived;
    await said(english.listening);
    adding.release();
    await said(english.recordingAdded);
    await bar.waitFor({ state: 'hidden' });
    await group.getByText('A minor').waitFor();
    await group.getByText('104 beats a minute').waitFor();
    expect(await recording.isChecked()).toBe(true);

    await studio.generate({ prompt: 'A march', seconds: 12 });
    expect((await studio.newestTrack()).tempo).toBeWithin(103, 106);
    const choice = `PATCH /v1/music/references/${await recording.inputValue()}`;
    const none = group.getByRole('radio', { name: english.noRecording, checked: true });
    visitor.expectProblem(/status of 503/);
    const ordered = Promise.withResolvers<void>();
    const refused = gate.replace(choice, async () => {
      await ordered.promise;
      refused.giveBack();
      return new Response(null, { status: 503 });
    });
    await recording.press('ArrowUp');
    await none.waitFor();
    await studio.order({ prompt: 'A march', seconds: 12 });
    ordered.resolve();
    await studio.warns(english.later);
    await recording.and(group.locator(':checked')).waitFor();
    const change = gate.hold(choice);
    await recording.press('ArrowUp');
    await none.waitFor();
    await change.arrived;
    await studio.order({ prompt: 'A march', seconds: 12 });
    // The order would have arrived before this.
    await studio.newestTrack();
    expect(studio.upstream.counts().generations).toBe(1);
    change.release();
    await studio.tracks.nth(1).waitFor();
    await studio.lines.last().getByText(english.complete).waitFor();
    expect((await studio.newestTrack()).tempo).not.toBeWithin(103, 106);

    await studio.press(english.delete, group);
    await studio.press(english.delete, page.getByRole('dialog'));
    await recording.waitFor({ state: 'detached' });
    expect(await group.getByRole('radio').count()).toBe(0);
    expect(gate.calls.filter((call) => call.startsWith('DELETE'))).toHaveLength(1);
  });

  it('that the network cuts off is explained, and sent again', async () => {
    await using studio = await openWithRecordings();
    const { world, visitor, bar, said, recording } = studio;
    visitor.expectProblem(/ERR_/);
    const fast = await studio.chooseSlowly();
    world.network.cut();
    await said(english.unreachable);
    await bar.waitFor({ state: 'hidden' });
    expect(await recording.count()).toBe(0);
    world.network.repair();
    await fast();
    await studio.press(english.sendAgain);
    await said(english.recordingAdded);
    await recording.and(studio.group.locator(':checked')).waitFor();
    await studio.button(english.sendAgain).waitFor({ state: 'hidden' });
  });

  it('is stopped by the keyboard, and can be chosen again', async () => {
    await using studio = await openWithRecordings();
    const { recording, said } = studio;
    const fast = await studio.chooseSlowly();
    const stop = studio.button(english.cancel, studio.group);
    await stop.press('Enter');
    await said(english.sendingStopped);
    await studio.button(english.chooseFile).and(studio.page.locator(':focus')).waitFor();
    expect(await recording.count()).toBe(0);
    await fast();
    await studio.choose();
    await said(english.recordingAdded);
  });

  it('is sent again by itself when the session is renewed meanwhile', async () => {
    await using studio = await openWithRecordings();
    const { gate, visitor, said } = studio;
    visitor.expectProblem(/status of 401/);
    const refused = gate.replace(ADD, () => {
      refused.giveBack();
      return new Response(null, { status: 401 });
    });
    await studio.choose();
    await said(english.recordingAdded);
    expect(gate.calls.filter((call) => call === ADD)).toHaveLength(2);
  });

  it('of another kind is refused in words, also when it is dropped on the page', async () => {
    await using studio = await openWithRecordings();
    const { page, visitor, group } = studio;
    visitor.expectProblem(/status of 422/);
    // Where the recordings are folded away.
    await page.setViewportSize({ width: 1280, height: 800 });
    await group.waitFor({ state: 'hidden' });
    await page.evaluate(() => {
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File(['ID3\x04 and so on'], 'song.mp3'));
      for (const type of ['dragover', 'drop'])
        document.body.dispatchEvent(new DragEvent(type, { dataTransfer, bubbles: true, cancelable: true }));
    });
    await studio.says('This is an MP3 file. Only WAV files can be heard here.');
    await studio.says(english.otherFile);
    expect(await studio.button(english.sendAgain, group).isVisible()).toBe(false);
    await studio.choose();
    await studio.says(english.recordingAdded.replace('{name}', HUMMING.name));
  });
});
