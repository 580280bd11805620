import { expect, it } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import manifest from '../../../package.json';
import { describeWith, program } from '../../support/requirements.ts';
import { runToEnd } from '../../support/run-to-end.ts';
import { testSettings } from '../../support/world.ts';

const UNIT = await Bun.file(new URL('../../../deploy/music-gateway@.service', import.meta.url)).text();
const BUN = 'ExecStart=/usr/local/bin/bun';
/** Of 100, as systemd rates it: the rest is the network, reading the host's files, and code made at run time. */
const MOST_EXPOSURE = 11;

describeWith([program('systemd-analyze')], 'deploy/music-gateway@.service', () => {
  it.each([
    ['is understood by systemd in every line', ['verify']],
    ['leaves the gateway little access', ['security', '--offline=true', `--threshold=${MOST_EXPOSURE}`]],
  ])('%s', async (_, command) => {
    const folder = await mkdtemp(`${tmpdir()}/unit-`);
    const file = `${folder}/music-gateway@.service`;
    await Bun.write(file, UNIT.replace(BUN, `ExecStart=${process.execPath}`));
    const environment = { SYSTEMD_COLORS: '0' };
    const ended = await runToEnd(['systemd-analyze', '--no-pager', ...command, file], { environment });
    expect(ended).toMatchObject({ status: 0, errors: '' });
    await rm(folder, { recursive: true });
  });

  it('gives the gateway longer to stop than the longest call may take', () => {
    const { timeouts } = testSettings({ UPSTREAM_URL: 'http://upstream.test', IDP_URL: 'http://idp.test' });
    const seconds = Number(/^TimeoutStopSec=(\d+)$/m.exec(UNIT)?.[1]);
    expect(seconds * 1000).toBeGreaterThan(Math.max(...Object.values(timeouts)));
  });

  it('starts what `bun run start` starts', () => {
    const [, requests, program] = /(\d+)\} exec bun (\S+)$/.exec(manifest.scripts.start) ?? [];
    expect(UNIT).toContain(`BUN_CONFIG_MAX_HTTP_REQUESTS=${requests}\n`);
    expect(UNIT).toContain(`${BUN} ${program}\n`);
  });
});
