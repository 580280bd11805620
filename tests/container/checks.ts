/** What must be true of a gateway in a container; each check gives what is wrong, or undefined. */

import { readFile } from 'node:fs/promises';
import { isUp } from '../support/is-up.ts';
import { releasedBody } from '../support/released-body.ts';
import { ORIGIN, SIGNED_IN } from '../support/world.ts';
import { type Container, exitStatus, inspect, isRunning } from './container.ts';

type Problem = Promise<string | undefined>;

const HEADERS = { origin: ORIGIN, cookie: SIGNED_IN, 'content-type': 'application/json' };
const ORDER = JSON.stringify({ model: 'm', prompt: 'p', music_length_ms: 3000 });

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

/** Asked as root, who owns all but the home folder. */
export async function diskProblem({ podman, id }: Container): Problem {
  for (const folder of ['/home/bun/app', '/tmp', '/dev/shm']) {
    const { status } = await podman.try('exec', '--user', '0', id, 'touch', `${folder}/probe`);
    if (status === 0) return `${folder} is writable`;
  }
  return undefined;
}

/** A browser's way through it: sign-in, models, a generation. */
export async function serviceProblem({ url, upstream }: Container): Problem {
  upstream
    .on('POST /oauth/token', () => Response.json({ access_token: 'identity' }))
    .on('POST /v1/auth/idp', () => Response.json({ access_token: 'access-1', refresh_token: 'refresh-1' }))
    .on('GET /v1/models', () => Response.json({ data: ['m'] }))
    .on('POST /v1/music', () => new Response('audio'));
  const post = { method: 'POST', headers: HEADERS };
  const signIn = JSON.stringify({ code: 'code', code_verifier: 'v'.repeat(43) });
  const signedIn = await fetch(`${url}/api/auth/idp`, { ...post, body: signIn });
  const cookies = signedIn.headers.getSetCookie();
  if (cookies.length !== 2 || !cookies.every((cookie) => /; Secure(;|$)/.test(cookie)))
    return `sign-in: ${signedIn.status} with ${cookies.length} cookies: ${cookies.join(' ')}`;
  const models = await fetch(`${url}/api/music/models`, { headers: HEADERS });
  if ((await models.text()) !== '{"data":["m"]}') return `models: ${models.status}`;
  const music = await fetch(`${url}/api/music/generate`, { ...post, body: ORDER });
  return (await music.text()) === 'audio' ? undefined : `generate: ${music.status}`;
}

/** Its own health check is right when it answers, and when it hangs. */
export async function healthProblem(container: Container): Problem {
  const { podman, id } = container;
  if (!(await isUp(container.url))) return 'it does not answer';
  const well = await podman.try('healthcheck', 'run', id);
  if (well.status !== 0) return `it answers, and the health check says: ${well.output}${well.errors}`;
  const pid = Number(await inspect(container, '.State.Pid'));
  process.kill(pid, 'SIGSTOP');
  const hanging = await podman.try('healthcheck', 'run', id);
  process.kill(pid, 'SIGCONT');
  return hanging.status === 0 ? 'it hangs, and the health check says that it is healthy' : undefined;
}

/** Many generations at once, while the health check runs, stay within the memory that it has. */
export async function memoryProblem(container: Container): Problem {
  const { url, upstream, podman, id } = container;
  const piece = new Uint8Array(64 * 1024).fill(7);
  const pieces = 100;
  upstream.on('POST /v1/music', () => {
    let left = pieces;
    return new Response(
      new ReadableStream({
        pull: (controller) => (left-- > 0 ? controller.enqueue(piece) : controller.close()),
      }),
    );
  });
  const generate = async () => {
    const answer = await fetch(`${url}/api/music/generate`, {
      method: 'POST',
      headers: HEADERS,
      body: ORDER,
    });
    let bytes = 0;
    for await (const chunk of answer.body ?? []) bytes += chunk.length;
    return bytes;
  };
  const [received] = await Promise.all([
    Promise.allSettled(Array.from({ length: 50 }, generate)),
    podman.try('healthcheck', 'run', id),
  ]);
  const whole = received.filter(
    (each) => each.status === 'fulfilled' && each.value === pieces * piece.length,
  );
  // That it was killed is known a moment later than that it does not answer.
  while (!(await isUp(container.url))) {
    if (!(await isRunning(container))) return `it ended with ${await exitStatus(container)}`;
  }
  return whole.length === received.length ? undefined : `${whole.length} of ${received.length} arrived whole`;
}

/** `podman stop` while a generation is under way: it arrives whole, and the exit status is 0. Ends the container. */
export async function drainProblem(container: Container, graceSeconds: number): Problem {
  const { url, upstream, podman, id } = container;
  const body = releasedBody();
  upstream.on('POST /v1/music', () => new Response(body.stream));
  body.release('first ');
  const generation = await fetch(`${url}/api/music/generate`, {
    method: 'POST',
    headers: HEADERS,
    body: ORDER,
  });
  const reading = generation.text().catch((error: Error) => error.message);
  let hasEnded = false;
  const stopping = podman.run('stop', '--time', String(graceSeconds), id).finally(() => {
    hasEnded = true;
  });
  while (!hasEnded && (await isUp(container.url))) await Bun.sleep(20);
  body.release('last');
  body.end();
  const received = await reading;
  await stopping;
  const status = await exitStatus(container);
  if (status !== '0') return `exit status ${status}`;
  return received === 'first last' ? undefined : `the generation under way arrived as: ${received}`;
}
