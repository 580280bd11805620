import { expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { startHttp2Proxy } from '../../support/http2-proxy.ts';
import { describeInChromium } from '../chromium.ts';
import { openStudio, studioIn } from './page.ts';

describeInChromium('the studio behind a proxy that speaks HTTP/2 and sends chunks', () => {
  it('signs in, generates, and plays a track from the library and from its public link', async () => {
    await using proxy = await startHttp2Proxy();
    // Without the bypass, Chromium would use no proxy for this machine.
    const browser = { proxy: { server: proxy.url, bypass: '<-loopback>' } };
    await using studio = await openStudio({ isSignedIn: false }, browser);
    await studio.signIn('Ada');
    await studio.isLoaded();
    await studio.generate({ isPublic: true });
    await studio.reload();
    await studio.press(english.play, studio.tracks.first());
    await studio.playsBeyond(0.1);
    const link = studioIn(await studio.visitor.open(await studio.sharedLink()));
    await link.press(english.listen);
    await link.playsBeyond(0.1);
    const versions = await link.page.evaluate(() =>
      performance.getEntriesByType('navigation').map((entry) => Object(entry.toJSON()).nextHopProtocol),
    );
    expect(versions).toEqual(['h2']);
  });
});
