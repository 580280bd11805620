import { expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium } from '../../support/chromium.ts';
import { openStudio } from './page.ts';

describeInChromium('one track is ordered and paid for', (visit) => {
  it('by a double click, although the order is accepted before the second click', async () => {
    await using studio = await openStudio(visit);
    const { mouse } = studio.page;
    await studio.generate({ prompt: 'Rain' });
    await studio.button(english.generate).hover();
    await mouse.down({ clickCount: 2 });
    await mouse.up({ clickCount: 2 });
    await studio.generate({ prompt: 'Snow' });
    expect(studio.upstream.counts().generations).toBe(2);
  });

  it.each(['button', 'length'] as const)('by Enter that is held down in the %s', async (where) => {
    await using studio = await openStudio(visit);
    const { keyboard } = studio.page;
    await studio.prompt.fill('Rain');
    await studio.length.fill('3');
    await (where === 'length' ? studio.length : studio.button(english.generate)).focus();
    await keyboard.down('Enter');
    await studio.tracks.first().waitFor();
    await keyboard.down('Enter');
    await keyboard.up('Enter');
    await studio.generate({ prompt: 'Snow' });
    expect(studio.upstream.counts().generations).toBe(2);
  });
});
