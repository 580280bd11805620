/** Firefox without a window, driven over WebDriver BiDi. @see https://www.w3.org/TR/webdriver-bidi/ */

import { once } from 'node:events';
import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { program } from '../../support/requirements.ts';
import { createFolder } from '../temporary-folder.ts';
import { type Engine, startProgram, typing } from './browser-engine.ts';

const FIREFOX = program('firefox-esr');
/** Stands in for a sound card, without which Firefox does not play. */
const PREFERENCES = 'user_pref("media.cubeb.force_mock_context", true);';
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
    const { context } = Value.Parse(CREATED, await send('browsingContext.create', { type: 'tab' }));
    const running = stack.move();
    return {
      async open(url) {
        await send('browsingContext.navigate', { context, url, wait: 'complete' });
      },
      async evaluate(expression) {
        const target = { context };
        const response = await send('script.evaluate', { expression, target, awaitPromise: true });
        const evaluated = Value.Parse(EVALUATED, response);
        if (evaluated.type === 'exception') throw new Error(evaluated.exceptionDetails.text);
        return evaluated.result.value;
      },
      async type(text) {
        await send('input.performActions', { context, ...typing(text) });
      },
      [Symbol.asyncDispose]: () => running.disposeAsync(),
    };
  },
};

/** `send` sends a command, and resolves to its result. */
async function connect(address: string) {
  const socket = new WebSocket(`${address}/session`);
  const inFlight = new Map<number, PromiseWithResolvers<unknown>>();
  let commands = 0;
  socket.addEventListener('message', ({ data }) => {
    const { id, type, result, error, message } = JSON.parse(String(data));
    const command = inFlight.get(id);
    inFlight.delete(id);
    if (type === 'success') command?.resolve(result);
    else command?.reject(new Error(`${error}: ${message}`));
  });
  socket.addEventListener('close', () => {
    for (const { reject } of inFlight.values()) reject(new Error('The browser has closed the connection'));
  });
  await once(socket, 'open');
  return {
    send(method: string, params: object): Promise<unknown> {
      const command = Promise.withResolvers<unknown>();
      commands += 1;
      inFlight.set(commands, command);
      socket.send(JSON.stringify({ id: commands, method, params }));
      return command.promise;
    },
    close: () => socket.close(),
  };
}
