/** A gateway in a container, with all the restrictions that a careful operator would set. */

import { eventually } from '../../support/eventually.ts';
import { freePorts } from '../../support/free-ports.ts';
import { isUp } from '../../support/is-up.ts';
import type { ScriptedUpstream } from '../../support/scripted-upstream.ts';
import { ORIGIN } from '../../support/world.ts';
import type { Podman } from './podman.ts';

export interface Container {
  readonly podman: Podman;
  readonly id: string;
  readonly url: string;
  readonly upstream: ScriptedUpstream;
}

const RESTRICTIONS = [
  // Not even /tmp or /dev/shm is writable.
  ...['--read-only', '--read-only-tmpfs=false', '--ipc', 'none'],
  ...['--cap-drop=all', '--security-opt', 'no-new-privileges'],
  ...['--memory', '256m', '--memory-swap', '256m', '--pids-limit', '64'],
  // Podman's own are higher than some machines allow.
  ...['--ulimit', 'nofile=1024:1024', '--ulimit', 'nproc=4096:4096'],
];

/** Options of `podman run`: the restrictions, and the settings of a gateway. */
export function restricted(port: number, upstream: ScriptedUpstream): string[] {
  const settings = {
    PORT: String(port),
    HOST: '127.0.0.1',
    UPSTREAM_URL: upstream.upstreamUrl,
    IDP_URL: upstream.identityProviderUrl,
    IDP_CLIENT_ID: 'studio',
    IDP_REDIRECT_URI: `${ORIGIN}/callback`,
    ALLOWED_ORIGINS: ORIGIN,
    MAX_IN_FLIGHT_REQUESTS: '400',
  };
  const environment = Object.entries(settings).flatMap(([name, value]) => ['--env', `${name}=${value}`]);
  const place = ['--pull', 'never', '--network', 'host', '--log-driver', 'k8s-file'];
  return [...place, ...RESTRICTIONS, ...environment];
}

/**
 * Starts it on a free port and waits until it responds; throws what it printed when it ends instead.
 *
 * @param options of `podman run`, beside the restrictions
 */
export async function startContainer(
  podman: Podman,
  image: string,
  upstream: ScriptedUpstream,
  options: readonly string[] = [],
): Promise<Container> {
  const port = await freePorts(1);
  const id = await podman.run('run', '--detach', ...restricted(port, upstream), ...options, image);
  const container = { podman, id, url: `http://127.0.0.1:${port}`, upstream };
  await eventually(async () => (await isUp(container.url)) || !(await isRunning(container)), 'its start');
  if (await isRunning(container)) return container;
  const { output, errors } = await podman.try('logs', id);
  throw new Error(
    `the container ended with ${await inspect(container, '.State.ExitCode')}:\n${output}${errors}`,
  );
}

export async function isRunning(container: Container): Promise<boolean> {
  return (await inspect(container, '.State.Running')) === 'true';
}

/** One value of what podman knows of the container, such as `.State.Pid`. */
export function inspect({ podman, id }: Container, field: string): Promise<string> {
  return podman.run('inspect', '--format', `{{${field}}}`, id);
}
