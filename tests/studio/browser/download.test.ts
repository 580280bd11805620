import { expect, it } from 'bun:test';
import { stat } from 'node:fs/promises';
import { wavSize } from '../../../src/demo/sandbox/audio/wav.ts';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium } from '../chromium.ts';
import { openStudio } from './page.ts';

describeInChromium('a download from the library', () => {
  it('shows how much of the track is here, and is all of it in the end', async () => {
    await using studio = await openStudio();
    const { page, gate, tracks, world } = studio;
    await studio.generate({ seconds: 10 });
    await tracks.first().getByText(english.private).waitFor();
    const rest = Promise.withResolvers<void>();
    const list = `${world.gatewayUrl}/api/upstream/v1/music/creations`;
    const listed = await page.request.get(list, { headers: { origin: world.studioUrl } });
    const { data } = await listed.json();
    let slices = 0;
    gate.replace(`GET /v1/music/creations/${data[0].id}/content`, (forward) =>
      slices++ === 0 ? forward() : rest.promise.then(forward),
    );
    const saved = page.waitForEvent('download');
    await studio.press(english.download, tracks.first());
    // The gateway's first slice is here, and not the second.
    await tracks
      .first()
      .getByText(/^Downloading: [1-9]\d?%$/)
      .waitFor();
    rest.resolve();
    const file = await saved;
    expect(file.suggestedFilename()).toBe('Rain on a tin roof.wav');
    expect((await stat(await file.path())).size).toBe(wavSize(10_000));
    await tracks.first().getByText(english.private).waitFor();
  });
});
