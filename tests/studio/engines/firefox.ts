/** Firefox without a window, driven over WebDriver BiDi. @see https://www.w3.org/TR/webdriver-bidi/ */

import { on, once } from 'node:events';
import { program } from '../../support/requirements.ts';
import { createFolder } from '../../support/temporary-folder.ts';
import { type Engine, startProgram, typing } from './browser-engine.ts';

const FIREFOX = program('firefox-esr');
/** Stands in for a sound card, without which Firefox does not play. */
const PREFERENCES = 'user_pref("media.cubeb.force_mock_context", true);';

export const firefox: Engine = {
  name: 'Firefox',
  requirements: [FIREFOX],
  playbackRetries: 0,
  canSeek: true,
  async launch() {
    await using stack = new AsyncDisposableStack();
    const home = stack.use(await createFolder());
    const profile = `${home.path}/profile`;
    await Bun.write(`${profile}/user.js`, PREFERENCES);
    const options = ['--headless', '--no-remote', '--profile', profile, '--remote-debugging-port=0'];
    const browser = stack.use(startProgram([FIREFOX.name, ...options], home));
    const { send, close } = await connect(await browser.printed(/WebDriver BiDi listening on (ws:\S+)/));
    stack.defer(close);
    await send('session.new', { capabilities: {} });
    const { context } = await send('browsingContext.create', { type: 'tab' });
    const running = stack.move();
    return {
      open: (url) => send('browsingContext.navigate', { context, url, wait: 'complete' }),
      async evaluate(expression) {
        const script = { expression, target: { context }, awaitPromise: true };
        const { result, exceptionDetails } = await send('script.evaluate', script);
        if (exceptionDetails) throw new Error(exceptionDetails.text);
        return result.value;
      },
      type: (text) => send('input.performActions', { context, ...typing(text) }),
      [Symbol.asyncDispose]: () => running.disposeAsync(),
    };
  },
};

/** `send` sends a command, and resolves to its result. */
async function connect(address: string) {
  const socket = new WebSocket(`${address}/session`);
  await once(socket, 'open');
  let commands = 0;
  return {
    async send(method: string, params: object) {
      commands += 1;
      const id = commands;
      socket.send(JSON.stringify({ id, method, params }));
      for await (const [{ data }] of on(socket, 'message', { close: ['close'] })) {
        const response = JSON.parse(String(data));
        if (response.id !== id) continue;
        if (response.type === 'success') return response.result;
        throw new Error(`${response.error}: ${response.message}`);
      }
      throw new Error('The browser has closed the connection');
    },
    close: () => socket.close(),
  };
}
