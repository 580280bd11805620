import { afterAll, expect, it } from 'bun:test';
import { describeWav } from '../../../src/demo/tour/wav-description.ts';
import { startDemo } from '../../support/demo-process.ts';
import { ROOT } from '../../support/documents.ts';
import { freePorts } from '../../support/free-ports.ts';
import { runToEnd } from '../../support/run-to-end.ts';
import { createFolder } from '../../support/temporary-folder.ts';

const elsewhere = Bun.serve({
  ...{ port: 0, hostname: 'localhost' },
  fetch: () => new Response('no gateway', { status: 500 }),
});
afterAll(() => elsewhere.stop(true));

function run(script: string, environment: Record<string, string>) {
  return runToEnd([process.execPath, 'run', '--silent', script], { cwd: ROOT, environment });
}

it('two demos on localhost, which share their cookies, end no session of each other', async () => {
  const ports = [await freePorts(6), await freePorts(6)];
  const [one, other] = ports.map((port) => `demo-${port}-svc_music_refresh`);
  await using demos = new AsyncDisposableStack();
  for (const port of ports) demos.use(await startDemo({ PORT: `${port}` }));
  const headers = { origin: `http://localhost:${(ports[1] ?? 0) + 5}`, cookie: `${one}=a; ${other}=b` };
  const checked = await fetch(`http://localhost:${ports[1]}/api/auth/session`, { headers });
  expect(checked.headers.getSetCookie().map((cookie) => cookie.split('=', 1)[0])).toEqual([
    `demo-${ports[1]}-svc_music_access`,
    other,
  ]);
});

it('the tour walks through the demo, finds every step right, and saves a track that plays', async () => {
  await using folder = await createFolder();
  const PORT = String(await freePorts(6));
  await using _ = await startDemo({ PORT, DEMO_ACCESS_TOKEN_SECONDS: '3' });
  const file = `${folder.path}/track.wav`;
  const { status, output } = await run('tour', { PORT, TOUR_TRACK: file });
  const steps = output.split('\n').filter((line) => line.startsWith('  '));
  expect(steps).toEqual(Array(15).fill(expect.stringMatching(/^ {2}ok /)));
  expect(status).toBe(0);
  const track = describeWav(Buffer.from(await Bun.file(file).bytes()));
  expect(track.seconds).toBe(30);
  expect(track.loudness).toBeGreaterThan(0.1);
});

it.each([
  ['demo', 'DEMO_ORIGINS', 'browsers do not send the cookies of the gateway', 'http://127.0.0.1:5173'],
  ['demo', 'PORT', 'is taken', String(elsewhere.port)],
  ['tour', 'PORT', 'run demo', '1'],
  ['tour', 'PORT', 'WRONG', String(elsewhere.port)],
])('the %s with a wrong %s exits with 1 and says so: %s', async (script, setting, problem, value) => {
  const { status, errors } = await run(script, { [setting]: value });
  expect([status, errors]).toEqual([1, expect.stringContaining(problem)]);
});
