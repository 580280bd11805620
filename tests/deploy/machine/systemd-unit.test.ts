import { expect, it } from 'bun:test';
import manifest from '../../../package.json';
import { createFolder } from '../../studio/temporary-folder.ts';
import { describeWith, program } from '../../support/requirements.ts';
import { runToEnd } from '../../support/run-to-end.ts';
import { testSettings } from '../../support/world.ts';

const UNIT = await Bun.file(new URL('../../../deploy/music-gateway@.service', import.meta.url)).text();
const BUN = 'ExecStart=/usr/local/bin/bun';
/** Of 100, as systemd rates it: the rest is the network, reading the host's files, and code made at run time. */
const MOST_EXPOSURE = 11;

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
