/** The demo's gateway: in this process, or as one of its own that a test can stop, kill and start again. */

import { createGateway } from '../../src/gateway/gateway.ts';
import { eventually } from './eventually.ts';
import { isUp } from './is-up.ts';
import { recordLog } from './recorded-log.ts';
import { testSettings } from './world.ts';

export interface DemoGateway extends AsyncDisposable {
  signal(signal: NodeJS.Signals): void;
  /** Kills it and starts it again. */
  restart(): Promise<void>;
}

export type DemoEnvironment = Readonly<Record<string, string>> & { readonly PORT: string };

export function startDemoGateway(environment: DemoEnvironment, isProcess: boolean): Promise<DemoGateway> {
  return isProcess ? startProcess(environment) : startHere(environment);
}

async function startHere(environment: DemoEnvironment): Promise<DemoGateway> {
  const gateway = createGateway({ settings: testSettings(environment), logger: recordLog().logger });
  gateway.listen({ port: environment.PORT, hostname: 'localhost' });
  const noProcess = () => {
    throw new Error('The gateway is no process of its own');
  };
  return {
    signal: noProcess,
    restart: noProcess,
    async [Symbol.asyncDispose]() {
      await gateway.stop(true);
    },
  };
}

async function startProcess(environment: DemoEnvironment): Promise<DemoGateway> {
  let running = spawn(environment);
  const kill = async () => {
    running.kill('SIGKILL');
    await running.exited;
  };
  const isReady = () => eventually(() => isUp(`http://localhost:${environment.PORT}`), 'the gateway');
  await isReady();
  return {
    signal: (signal) => running.kill(signal),
    async restart() {
      await kill();
      running = spawn(environment);
      await isReady();
    },
    [Symbol.asyncDispose]: kill,
  };
}

function spawn(environment: DemoEnvironment) {
  return Bun.spawn([process.execPath, 'src/index.ts'], {
    cwd: new URL('../..', import.meta.url).pathname,
    env: { NODE_ENV: 'production', HOST: 'localhost', ...environment },
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: 'ignore',
  });
}
