/** Keys for a container that are podman secrets, and a session that is sealed with them. */

import { randomBytes } from 'node:crypto';
import { request } from '../../support/world.ts';
import { signIn } from './checks.ts';
import type { Container } from './container.ts';
import type { Podman } from './podman.ts';

const SECRET = 'cookie-keys';

export const newKey = () => randomBytes(32).toString('base64url');

/** Makes a secret of the keys; returns the options of `podman run` that are on the operating page. */
export async function keepSecret(podman: Podman, keys: string): Promise<readonly string[]> {
  const file = `${podman.folder}/${SECRET}`;
  await Bun.write(file, `${keys}\n`);
  // Podman 4.3 cannot replace a secret.
  await podman.try('secret', 'rm', SECRET);
  await podman.run('secret', 'create', SECRET, file);
  // At its usual place, in /run/secrets, Podman 4.3 cannot mount it when the disk is read-only.
  const path = `/secrets/${SECRET}`;
  return ['--secret', `${SECRET},target=${path}`, '--env', `COOKIE_KEYS_FILE=${path}`];
}

/** Signs in; returns the cookies as a browser sends them. */
export async function sealedCookies(container: Pick<Container, 'url' | 'upstream'>): Promise<string> {
  const { cookies } = await signIn(container);
  return cookies.map((cookie) => cookie.split(';', 1)[0]).join('; ');
}

/** Whether the gateway opens the cookies, and calls the upstream with the token that is in them. */
export async function opens({ url, upstream }: Pick<Container, 'url' | 'upstream'>, cookie: string) {
  upstream.on('GET /v1/models', ({ headers }) => new Response(headers.get('authorization')));
  const response = await request(`${url}/api/music/models`, { cookie });
  return (await response.text()) === 'Bearer access-1';
}
