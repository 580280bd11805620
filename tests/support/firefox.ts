/** Firefox without a window, driven over WebDriver BiDi. */

import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { connectBidi } from './bidi.ts';
import type { Engine } from './browser-engine.ts';
import { createHome, startProgram } from './browser-process.ts';
import { program } from './requirements.ts';

const FIREFOX = program('firefox-esr');
/** Stands in for a sound card, without which Firefox does not play. */
const PREFERENCES = 'user_pref("media.cubeb.force_mock_context", true);';
/** Makes every window a private one: the protocol itself knows none. */
const PRIVATE = 'user_pref("browser.privatebrowsing.autostart", true);';
const CREATED = Type.Object({ context: Type.String() });
const EVALUATED = Type.Union([
  Type.Object({ type: Type.Literal('success'), result: Type.Object({ value: Type.String() }) }),
  Type.Object({ type: Type.Literal('exception'), exceptionDetails: Type.Object({ text: Type.String() }) }),
]);

export const firefox: Engine = {
  name: 'Firefox',
  requirements: [FIREFOX],
  playbackRetries: 0,
  canSeek: true,
  async launch({ isPrivate }) {
    await using stack = new AsyncDisposableStack();
    const home = stack.use(await createHome());
    const profile = `${home.path}/profile`;
    await Bun.write(`${profile}/user.js`, isPrivate ? PREFERENCES + PRIVATE : PREFERENCES);
    const options = ['--headless', '--no-remote', '--profile', profile, '--remote-debugging-port=0'];
    const browser = stack.use(startProgram([FIREFOX.name, ...options], home));
    const address = await browser.printed(/WebDriver BiDi listening on (ws:\S+)/);
    const bidi = stack.use(await connectBidi(`${address}/session`));
    const { context } = Value.Parse(CREATED, await bidi.send('browsingContext.create', { type: 'tab' }));
    const running = stack.move();
    return {
      async open(url) {
        await bidi.send('browsingContext.navigate', { context, url, wait: 'complete' });
      },
      async evaluate(expression) {
        const target = { context };
        const response = await bidi.send('script.evaluate', { expression, target, awaitPromise: true });
        const evaluated = Value.Parse(EVALUATED, response);
        if (evaluated.type === 'exception') throw new Error(evaluated.exceptionDetails.text);
        return evaluated.result.value;
      },
      async perform(input) {
        await bidi.send('input.performActions', { context, actions: [input] });
      },
      [Symbol.asyncDispose]: () => running.disposeAsync(),
    };
  },
};
