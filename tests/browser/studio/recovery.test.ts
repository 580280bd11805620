import { it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { describeInChromium } from '../../support/chromium.ts';
import { hearTrack } from './heard-track.ts';
import { openStudio } from './page.ts';

/** How long a person is offline in a lift. */
const OFFLINE_MS = 20_000;

describeInChromium(
  'a track that is disturbed while it arrives is whole, and was heard as far as it was here,',
  (visit) => {
    // Chromium plays nothing of the first tenth before it has more.
    it.each([0.1, 0.5, 0.9])('when its connection is cut at %d of it', async (share) => {
      await using studio = await openStudio(visit);
      const { world, visitor } = studio;
      visitor.expectProblem(/ERR_/);
      const track = await hearTrack(studio, share);
      await track.arrives();
      world.network.cut();
      track.release();
      await studio.shows(english.reconnecting);
      await studio.says(english.recovering);
      if (share > 0.1) await track.playsWhatIsHere();
      world.network.repair();
      await track.isWhole();
    });

    it('when the gateway is killed and started again', async () => {
      await using studio = await openStudio(visit, { isGatewayProcess: true });
      studio.visitor.expectProblem(/ERR_/);
      const track = await hearTrack(studio, 0.5);
      await track.arrives();
      await studio.world.gateway.restart();
      track.release();
      await track.playsWhatIsHere();
      await track.isWhole();
    });

    it('when the browser is offline for 20 s', async () => {
      await using studio = await openStudio(visit);
      const { world, visitor } = studio;
      visitor.expectProblem(/ERR_/);
      const track = await hearTrack(studio, 0.5);
      await track.arrives();
      await visitor.context.setOffline(true);
      world.network.cut();
      track.release();
      await studio.shows(english.reconnecting);
      await track.playsWhatIsHere();
      await Bun.sleep(OFFLINE_MS);
      world.network.repair();
      await visitor.context.setOffline(false);
      await track.isWhole();
    });

    it('when the gateway is stopped, so that its connections stay open without a byte', async () => {
      await using studio = await openStudio(visit, { isGatewayProcess: true });
      studio.visitor.tolerateProblem(/ERR_|status of 502/);
      const track = await hearTrack(studio, 0.5);
      await track.arrives();
      studio.world.gateway.signal('SIGSTOP');
      track.release();
      await track.playsWhatIsHere();
      await studio.shows(english.reconnecting);
      studio.world.gateway.signal('SIGCONT');
      await track.isWhole();
    });
  },
);
