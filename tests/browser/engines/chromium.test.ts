import { it } from 'bun:test';
import { describeInChromium } from '../../support/chromium.ts';
import { openStudio } from '../studio/page.ts';
import { LONG_SECONDS, listenThroughEverything } from './listening.ts';

describeInChromium('a long track in Chromium', (visit) => {
  it('plays through seeks, an expired token, a restart of the gateway and a pause', async () => {
    await using studio = await openStudio(visit, { isGatewayProcess: true, startingBalance: 5_000 });
    const { page, visitor, world } = studio;
    // Of slices without a valid token, and of the restart.
    visitor.tolerateProblem(/ERR_|status of 401/);
    await studio.generate({ seconds: LONG_SECONDS });
    const call: Parameters<typeof listenThroughEverything>[0]['call'] = async (run, ...args) =>
      JSON.parse(
        await page.evaluate(
          `(async () => JSON.stringify(await (${run})(...${JSON.stringify(args)})) ?? 'null')()`,
        ),
      );
    await listenThroughEverything({ call }, world, true);
  }, 600_000);
});
