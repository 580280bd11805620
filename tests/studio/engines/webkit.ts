/** WebKitGTK's MiniBrowser on a screen of its own, driven over WebDriver. @see https://www.w3.org/TR/webdriver2/ */

import { eventually } from '../../support/eventually.ts';
import { freePorts } from '../../support/free-ports.ts';
import { program } from '../../support/requirements.ts';
import { createFolder } from '../../support/temporary-folder.ts';
import { type Engine, startProgram, typing } from './browser-engine.ts';

const DRIVER = program('WebKitWebDriver');
const SCREEN = program('Xvfb');
const ENVIRONMENT = {
  // Otherwise a developer would see the windows and hear the music. Without a sound card it plays in time all the same.
  GDK_BACKEND: 'x11',
  GST_PLUGIN_FEATURE_RANK: 'alsasink:NONE,pulsesink:NONE,pipewiresink:NONE',
  // A screen reader is looked for on a bus that may not be there.
  NO_AT_BRIDGE: '1',
};

export const webkit: Engine = {
  name: 'WebKit',
  requirements: [DRIVER, SCREEN],
  // Under load, one in ten tracks stalls for ever at its beginning, although all its bytes are there.
  playbackRetries: 3,
  canSeek: false,
  async launch() {
    await using stack = new AsyncDisposableStack();
    const home = stack.use(await createFolder());
    const screen = stack.use(startProgram([SCREEN.name, '-displayfd', '1', '-nolisten', 'tcp'], home));
    const DISPLAY = `:${await screen.printed(/^(\d+)\n/m)}`;
    const port = await freePorts(1);
    stack.use(startProgram([DRIVER.name, `--port=${port}`], home, { ...ENVIRONMENT, DISPLAY }));
    const driver = `http://127.0.0.1:${port}`;
    await eventually(() => fetch(`${driver}/status`).catch(() => undefined), DRIVER.name);
    const { sessionId } = await send(`${driver}/session`, { capabilities: {} });
    const session = `${driver}/session/${sessionId}`;
    const running = stack.move();
    return {
      open: (url) => send(`${session}/url`, { url }),
      evaluate: (expression) => send(`${session}/execute/sync`, { script: `return ${expression}`, args: [] }),
      type: (text) => send(`${session}/actions`, typing(text)),
      [Symbol.asyncDispose]: () => running.disposeAsync(),
    };
  },
};

async function send(address: string, body: object) {
  const response = await fetch(address, { method: 'POST', body: JSON.stringify(body) });
  const text = await response.text();
  if (!response.ok) throw new Error(text);
  return JSON.parse(text).value;
}
