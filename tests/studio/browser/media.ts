/** What is heard and drawn of a track. */

import type { Studio } from './page.ts';

/** Waits until the element plays something louder than silence. */
export async function isHeard(studio: Studio): Promise<void> {
  await studio.playsBeyond(0.1);
  await studio.audio.evaluate(async (element: HTMLAudioElement & { captureStream(): MediaStream }) => {
    const context = new AudioContext();
    const analyser = context.createAnalyser();
    context.createMediaStreamSource(element.captureStream()).connect(analyser);
    const samples = new Float32Array(analyser.fftSize);
    while (!samples.some((sample) => Math.abs(sample) > 0.01)) {
      await new Promise(requestAnimationFrame);
      analyser.getFloatTimeDomainData(samples);
    }
    await context.close();
  });
}

/** Waits until the waveform has bars that are higher than those of silence, and gives how far they reach. */
export async function waveformIsDrawn({ page }: Studio, least = 0): Promise<number> {
  const reach = await page.waitForFunction((least) => {
    const host = document.querySelector('[data-part=waveform] > div');
    const canvas = host?.shadowRoot?.querySelector('canvas');
    if (!canvas || canvas.width === 0) return undefined;
    const copy = new OffscreenCanvas(canvas.width, Math.ceil(canvas.height / 4));
    const context = copy.getContext('2d', { willReadFrequently: true });
    context?.drawImage(canvas, 0, 0);
    const { data = [] } = context?.getImageData(0, 0, copy.width, copy.height) ?? {};
    const columns = Array.from(
      data.keys().filter((index) => data[index]),
      (index) => (index / 4) % copy.width,
    );
    const share = columns.reduce((last, column) => Math.max(last, column), 0) / copy.width;
    return share > least ? share : undefined;
  }, least);
  return (await reach.jsonValue()) ?? 0;
}
