/** A gateway in a container, with all the restrictions that a careful operator would set. */

import { randomBytes } from 'node:crypto';
import { freePorts } from '../../support/free-ports.ts';
import type { ScriptedUpstream } from '../../support/scripted-upstream.ts';
import { ORIGIN } from '../../support/world.ts';
import type { Podman } from './podman.ts';

const RESTRICTIONS = [
  // Not even /tmp or /dev/shm is writable.
  ...['--read-only', '--read-only-tmpfs=false', '--ipc', 'none'],
  ...['--cap-drop=all', '--security-opt', 'no-new-privileges'],
  ...['--memory', '256m', '--memory-swap', '256m', '--pids-limit', '64'],
  // Podman's own are higher than some machines allow.
  ...['--ulimit', 'nofile=1024:1024', '--ulimit', 'nproc=4096:4096'],
];

/** Prepares `podman run`, with the key for cookies in a secret as on the operating page. */
export async function restricted(podman: Podman, upstream: ScriptedUpstream) {
  const port = await freePorts(1);
  const key = randomBytes(32).toString('base64url');
  const file = `${podman.folder}/cookie-keys`;
  await Bun.write(file, `${key}\n`);
  await podman.run('secret', 'create', 'cookie-keys', file);
  const settings = {
    PORT: String(port),
    HOST: '127.0.0.1',
    UPSTREAM_URL: upstream.upstreamUrl,
    IDP_URL: upstream.identityProviderUrl,
    IDP_CLIENT_ID: 'studio',
    IDP_REDIRECT_URI: `${ORIGIN}/callback`,
    ALLOWED_ORIGINS: ORIGIN,
    MAX_IN_FLIGHT_REQUESTS: '400',
    // So that users of a test need not sign in.
    COOKIE_KEYS_ACCEPT_PLAIN: 'true',
    // At its usual place, in /run/secrets, Podman 4.3 cannot mount it when the disk is read-only.
    COOKIE_KEYS_FILE: '/secrets/cookie-keys',
  };
  const environment = Object.entries(settings).flatMap(([name, value]) => ['--env', `${name}=${value}`]);
  const place = ['--pull', 'never', '--network', 'host', '--log-driver', 'k8s-file'];
  const secret = ['--secret', 'cookie-keys,target=/secrets/cookie-keys'];
  const options = [...place, ...RESTRICTIONS, ...environment, ...secret];
  return { options, key, url: `http://127.0.0.1:${port}` };
}
