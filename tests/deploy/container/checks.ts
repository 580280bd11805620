/** What must be true of a gateway in a container; each check returns what is wrong, or undefined. */

import { readFile } from 'node:fs/promises';
import { eventually } from '../../support/eventually.ts';
import { isUp } from '../../support/is-up.ts';
import { releasedBody } from '../../support/released-body.ts';
import { request, SIGNED_IN } from '../../support/world.ts';
import { type Container, inspect, isRunning } from './container.ts';

type Problem = Promise<string | undefined>;
const EXIT_CODE = '.State.ExitCode';

function generate({ url }: Container, cookie = SIGNED_IN): Promise<Response> {
  const json = { model: 'm', prompt: 'p', music_length_ms: 3000 };
  return request(`${url}/api/music/generate`, { cookie, json });
}

/** By the kernel's own account of the process. @see proc(5), `/proc/pid/status` */
export async function rightsProblem(container: Container): Problem {
  const pid = await inspect(container, '.State.Pid');
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const field = (name: string) => new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(status)?.[1]?.split('\t') ?? [];
  const ids = [...field('Uid'), ...field('Gid')];
  if (ids.length !== 8 || ids.includes('0')) return `user and group ${ids.join(' ')}`;
  for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb']) {
    if (Number.parseInt(field(set)[0] ?? 'none', 16) !== 0) return `${set} is ${field(set)}`;
  }
  return field('NoNewPrivs')[0] === '1' ? undefined : 'it can gain privileges';
}

/** Tried as root, who owns all but the home folder. */
export async function diskProblem({ podman, id }: Container): Problem {
  for (const folder of ['/home/bun/app', '/tmp', '/dev/shm']) {
    const { status } = await podman.try('exec', '--user', '0', id, 'touch', `${folder}/probe`);
    if (status === 0) return `${folder} is writable`;
  }
  return undefined;
}

/** Returns the status, and the session cookies as they are set. */
export async function signIn({ url, upstream }: Pick<Container, 'url' | 'upstream'>) {
  upstream
    .on('POST /oauth/token', () => Response.json({ access_token: 'identity' }))
    .on('POST /v1/auth/idp', () => Response.json({ access_token: 'access-1', refresh_token: 'refresh-1' }));
  const json = { code: 'code', code_verifier: 'v'.repeat(43) };
  const response = await request(`${url}/api/auth/idp`, { json });
  return { status: response.status, cookies: response.headers.getSetCookie() };
}

/** A browser's requests: sign-in, models, a generation. */
export async function serviceProblem(container: Container): Problem {
  const { url, upstream } = container;
  upstream
    .on('GET /v1/models', () => Response.json({ data: ['m'] }))
    .on('POST /v1/music', () => new Response('audio'));
  const { status, cookies } = await signIn(container);
  if (cookies.length !== 2 || !cookies.every((cookie) => /; Secure(;|$)/.test(cookie)))
    return `sign-in: ${status} with ${cookies.length} cookies: ${cookies.join(' ')}`;
  const models = await request(`${url}/api/music/models`, { cookie: SIGNED_IN });
  if ((await models.text()) !== '{"data":["m"]}') return `models: ${models.status}`;
  const music = await generate(container);
  return (await music.text()) === 'audio' ? undefined : `generate: ${music.status}`;
}

/** Its own health check is right when it responds, and when it hangs. */
export async function healthProblem(container: Container): Problem {
  const { podman, id } = container;
  if (!(await isUp(container.url))) return 'it does not respond';
  const well = await podman.try('healthcheck', 'run', id);
  if (well.status !== 0) return `it responds, and the health check says: ${well.output}${well.errors}`;
  const pid = Number(await inspect(container, '.State.Pid'));
  process.kill(pid, 'SIGSTOP');
  const hanging = await podman.try('healthcheck', 'run', id);
  process.kill(pid, 'SIGCONT');
  return hanging.status === 0 ? 'it hangs, and the health check says that it is healthy' : undefined;
}

/** Each of another user. In 256 MB the gateway streams 78. */
export const GENERATIONS_AT_ONCE = 40;

/** Many generations at once, while the health check runs, stay within the memory that it has. */
export async function memoryProblem(container: Container): Problem {
  const { upstream, podman, id } = container;
  const piece = new Uint8Array(64 * 1024).fill(7);
  const pieces = 100;
  upstream.on('POST /v1/music', () => {
    const body = async function* () {
      for (let sent = 0; sent < pieces; sent++) yield piece;
    };
    return new Response(body());
  });
  const sizeOfOne = async (user: number) => {
    let bytes = 0;
    for await (const chunk of (await generate(container, `svc_music_access=user-${user}`)).body ?? [])
      bytes += chunk.length;
    return bytes;
  };
  const [sizes] = await Promise.all([
    Promise.all(Array.from({ length: GENERATIONS_AT_ONCE }, (_, user) => sizeOfOne(user).catch(() => 0))),
    podman.try('healthcheck', 'run', id),
  ]);
  // Podman knows a moment later than its clients that it was killed.
  const hasEnded = async () => !(await isRunning(container));
  await eventually(async () => (await isUp(container.url)) || (await hasEnded()), 'it to respond or to end');
  if (await hasEnded()) return `it ended with ${await inspect(container, EXIT_CODE)}`;
  const complete = sizes.filter((size) => size === pieces * piece.length);
  return complete.length === sizes.length ? undefined : `${complete.length} of ${sizes.length} are complete`;
}

/** `podman stop` while a generation is in flight: it arrives completely, and the exit status is 0. */
export async function drainProblem(container: Container): Problem {
  const { url, upstream, podman, id } = container;
  const body = releasedBody();
  upstream.on('POST /v1/music', () => new Response(body.stream));
  body.release('first ');
  const reading = (await generate(container)).text().catch((error: Error) => error.message);
  const stopping = podman.run('stop', '--time', '20', id);
  const refuses = async () => !(await isUp(url));
  await Promise.race([stopping, eventually(refuses, 'it to refuse connections')]);
  body.release('last');
  body.end();
  const received = await reading;
  await stopping;
  const status = await inspect(container, EXIT_CODE);
  if (status !== '0') return `exit status ${status}`;
  return received === 'first last' ? undefined : `the generation in flight arrived as: ${received}`;
}
