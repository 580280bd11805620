import { it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { firefox } from '../../support/firefox.ts';
import { describeWith } from '../../support/requirements.ts';
import { describeSmokeTests, TIMEOUT_MS } from './smoke-tests.ts';
import { openStudio, order, playsBeyond, signIn } from './studio.ts';

/** So long that nobody waits until its middle is played. */
const LONG_SECONDS = 150;

describeSmokeTests(firefox);

// Not in WebKitGTK 2.50, where a seek in a file without Content-Length ends in silence every now and then.
describeWith(firefox.requirements, 'a complete track in Firefox', () => {
  it(
    'plays from its middle',
    async () => {
      await using studio = await openStudio(firefox);
      const { person } = studio;
      await signIn(person);
      await order(person, LONG_SECONDS);
      await person.sees(english.complete);
      await playsBeyond(person, 0.1);
      await person.clicks(english.position);
      await playsBeyond(person, LONG_SECONDS / 2 + 1);
    },
    TIMEOUT_MS,
  );
});
