import { expect, it } from 'bun:test';
import manifest from '../../package.json';
import { IDLE_TIMEOUT_SECONDS } from '../../src/gateway/exchange/exchange.ts';
import { STOPPED_MS } from '../../src/gateway/exchange/observed-body.ts';
import { BODY_PATIENCE_MS } from '../../src/gateway/exchange/upload.ts';
import { SILENCE_MS } from '../../src/gateway/http/body-reader.ts';
import { readDocument } from '../support/documents.ts';
import { describeWith, program } from '../support/requirements.ts';
import { runToEnd } from '../support/run-to-end.ts';
import { createFolder } from '../support/temporary-folder.ts';
import { testSettings } from '../support/world.ts';

const { text: UNIT } = await readDocument('deploy/music-gateway@.service');
const BUN = 'ExecStart=/usr/local/bin/bun';
/** Of 100, as systemd rates it: the rest is the network, reading the host's files, and code made at run time. */
const MOST_EXPOSURE = 11;

it.each([
  ['nginx.conf', 2, /^ *proxy_(?:read|send)_timeout (\d+)s;$/gm],
  ['two-instances/haproxy.cfg', 1, /^ *timeout server (\d+)s$/gm],
  ['music-gateway@.service', 1, /^TimeoutStopSec=(\d+)$/gm],
  ['compose/compose.yaml', 1, /^ *stop_grace_period: (\d+)s$/gm],
  ['README.md', 1, /--stop-timeout (\d+) /g],
])('deploy/%s waits longer than the longest call may take', async (file, times, pattern) => {
  const { timeouts } = testSettings();
  const { text } = await readDocument(`deploy/${file}`);
  const waits = Array.from(text.matchAll(pattern), ([, seconds]) => Number(seconds) * 1000);
  expect(waits).toHaveLength(times);
  expect(Math.min(...waits)).toBeGreaterThan(Math.max(...Object.values(timeouts)));
});

it.each([
  ['nginx.conf', /^ *send_timeout (\d+)s;$/gm],
  ['two-instances/haproxy.cfg', /^ *timeout client (\d+)s$/gm],
])('deploy/%s lets a reader take nothing for as long as the gateway does', async (file, pattern) => {
  const { text } = await readDocument(`deploy/${file}`);
  const waits = Array.from(text.matchAll(pattern), ([, seconds]) => Number(seconds) * 1000);
  expect(waits).toEqual([STOPPED_MS]);
});

it('deploy/nginx.conf leaves the size and the pace of an upload to the gateway', async () => {
  const { text } = await readDocument('deploy/nginx.conf');
  const upload = /location \/api\/upstream\/ \{.*?\}/s.exec(text)?.[0] ?? '';
  const numberOf = (name: string) => Number(new RegExp(`${name} (\\d+)[ms];`).exec(upload)?.[1]);
  expect(numberOf('client_max_body_size') * 1024 ** 2).toBeGreaterThan(testSettings().maxUploadBytes);
  expect(numberOf('client_body_timeout') * 1000).toBeGreaterThan(Math.max(BODY_PATIENCE_MS, SILENCE_MS));
});

// Bun closes an idle connection up to 4 s early. A POST that crosses that is lost, and must not be sent again.
it('an idle connection is closed first by what is in front: load balancers after 60 s, nginx before that', async () => {
  const { text } = await readDocument('deploy/nginx.conf');
  const seconds = Number(/^ *keepalive_timeout (\d+)s;$/m.exec(text)?.[1]);
  expect(seconds).toBeLessThan(60);
  expect(IDLE_TIMEOUT_SECONDS - 4).toBeGreaterThan(60);
});

it('deploy/music-gateway@.service starts what `bun run start` starts', () => {
  const [, requests, program] = /(\d+)\} exec bun (\S+)$/.exec(manifest.scripts.start) ?? [];
  expect(UNIT).toContain(`BUN_CONFIG_MAX_HTTP_REQUESTS=${requests}\n`);
  expect(UNIT).toContain(`${BUN} ${program}\n`);
});

describeWith([program('systemd-analyze')], 'deploy/music-gateway@.service', () => {
  it('is understood by systemd in every line, and leaves the gateway little access', async () => {
    await using folder = await createFolder();
    const file = `${folder.path}/music-gateway@.service`;
    await Bun.write(file, UNIT.replace(BUN, `ExecStart=${process.execPath}`));
    const environment = { SYSTEMD_COLORS: '0' };
    for (const command of [['verify'], ['security', '--offline=true', `--threshold=${MOST_EXPOSURE}`]]) {
      const ended = await runToEnd(['systemd-analyze', '--no-pager', ...command, file], { environment });
      expect(ended).toMatchObject({ status: 0, errors: '' });
    }
  });
});
