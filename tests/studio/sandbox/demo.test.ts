import { afterAll, beforeAll, describe, expect, it } from 'bun:test';
import { describeWav } from '../../../src/demo/tour/wav-description.ts';
import { ROOT } from '../../support/documents.ts';
import { freePorts } from '../../support/free-ports.ts';
import { linesOf } from '../../support/lines-of.ts';
import { createFolder } from '../../support/temporary-folder.ts';

/** Bun prints this when there is a .env. */
const DOT_ENV_NOTE = /^\[[\d.]+ms\] ".env"\n/;
/** Nothing is served there: the demo only lets its pages in. */
const OWN_ORIGINS = ['http://localhost:5173', 'http://localhost'];
let port = 0;
let demo: ReturnType<typeof run>;
const greeting: string[] = [];

function run(script: string, environment: Record<string, string> = {}) {
  const { PATH, HOME } = process.env;
  return Bun.spawn([process.execPath, 'run', '--silent', script], {
    cwd: ROOT,
    env: { PATH, HOME, PORT: String(port), DEMO_ACCESS_TOKEN_SECONDS: '3', ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

async function errorsOf(ending: ReturnType<typeof run>, status = 1): Promise<string> {
  expect(await ending.exited).toBe(status);
  return (await ending.stderr.text()).replace(DOT_ENV_NOTE, '');
}

beforeAll(async () => {
  port = await freePorts(7);
  demo = run('demo', { DEMO_ORIGINS: OWN_ORIGINS.join(', ') });
  for await (const line of linesOf(demo.stdout)) {
    greeting.push(line);
    if (line.includes('Ctrl-C')) break;
  }
});
afterAll(async () => {
  // Stops cleanly on Ctrl-C, whatever was done with it.
  demo.kill('SIGINT');
  expect(await errorsOf(demo, 0)).toBe('');
});

describe('bun run demo', () => {
  // That such a page can sign in: studio/documented-samples.test.ts.
  it('prints the addresses, the pages of your own that it lets in, and what to do next', () => {
    const said = OWN_ORIGINS.map((origin) => `  ${origin}   with the redirect URI ${origin}/`);
    said.push(`  studio              http://localhost:${port + 5}`);
    said.push(`  PORT=${port} npx --yes bun@${Bun.version} run tour`);
    expect(greeting).toEqual(expect.arrayContaining(said));
  });

  it.each([
    ['http://127.0.0.1:5173', 'From a page on another site, browsers do not send the cookies of the gateway'],
    ['http://localhost:5173/app', 'must be written as a browser sends it: http://localhost:5173\n'],
    ['http://localhost:4180', 'http://localhost:4180 is an address of the demo itself'],
  ])('refuses a page that could not use the gateway: %s', async (page, problem) => {
    const errors = await errorsOf(run('demo', { PORT: '4175', DEMO_ORIGINS: page }));
    expect(errors).toMatch(new RegExp(`^DEMO_ORIGINS: .*${RegExp.escape(problem)}`));
  });

  it('names a port that is taken', async () => {
    // Two ports further, the gateway would have that of the first demo's upstream.
    const errors = await errorsOf(run('demo', { PORT: String(port + 2) }));
    expect(errors).toContain(`Port ${port + 2} is taken`);
  });
});

describe('bun run tour', () => {
  it('walks through the demo, finds every step right, and saves a track that plays', async () => {
    await using folder = await createFolder();
    const file = `${folder.path}/track.wav`;
    const tour = run('tour', { TOUR_TRACK: file });
    const [output, errors] = await Promise.all([tour.stdout.text(), errorsOf(tour, 0)]);
    expect(errors).toBe('');
    const steps = output.split('\n').filter((line) => line.startsWith('  '));
    expect(steps).toHaveLength(13);
    expect(steps.every((line) => line.startsWith('  ok '))).toBe(true);
    const track = describeWav(Buffer.from(await Bun.file(file).bytes()));
    expect(track.seconds).toBe(30);
    expect(track.loudness).toBeGreaterThan(0.1);
  }, 60_000);

  it('exits with 1 and says what to start when no demo runs, and at the step that is wrong', async () => {
    expect(await errorsOf(run('tour', { PORT: '1' }))).toContain('run demo');
    await using elsewhere = Bun.serve({ port: 0, fetch: () => new Response('no gateway', { status: 500 }) });
    expect(await errorsOf(run('tour', { PORT: String(elsewhere.port) }))).toContain('WRONG');
  });
});
