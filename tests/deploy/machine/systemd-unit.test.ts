import { expect, it } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import manifest from '../../../package.json';
import { describeWith, program } from '../../support/requirements.ts';
import { runToEnd } from '../../support/run-to-end.ts';
import { testSettings } from '../../support/world.ts';

const UNIT = fileURLToPath(new URL('../../../deploy/music-gateway@.service', import.meta.url));
const BUN = 'ExecStart=/usr/local/bin/bun';
/** Of 10, as systemd rates it: the rest is the network, reading the host's files, and code made at run time. */
const MOST_EXPOSURE = 1.1;

/** Runs systemd-analyze on a copy of the unit that is changed; Bun is where it is on this machine. */
async function analyze(command: string[], line = '', instead = '') {
  const folder = await mkdtemp(`${tmpdir()}/unit-`);
  const unit = (await Bun.file(UNIT).text()).replace(BUN, `ExecStart=${process.execPath}`);
  if (!unit.includes(line)) throw new Error(`the unit has no ${line}`);
  await Bun.write(`${folder}/music-gateway@.service`, unit.replace(line, instead));
  const file = `${folder}/music-gateway@.service`;
  const environment = { SYSTEMD_COLORS: '0' };
  const ended = await runToEnd(['systemd-analyze', '--no-pager', ...command, file], { environment });
  await rm(folder, { recursive: true });
  return ended;
}

const security = ['security', '--offline=true', `--threshold=${MOST_EXPOSURE * 10}`];

describeWith([program('systemd-analyze')], 'deploy/music-gateway@.service', () => {
  it('is understood by systemd in every line', async () => {
    expect(await analyze(['verify'])).toEqual({ status: 0, output: '', errors: '' });
  });

  it.each([
    ['a key that it does not know', 'ProtectClock=', 'ProtectClocks='],
    ['a program that is not there', process.execPath, '/usr/local/bin/none'],
  ])('is refused with %s', async (_, line, instead) => {
    expect((await analyze(['verify'], line, instead)).errors).toContain(instead.replace('=', ''));
  });

  it('leaves the gateway little access to the machine', async () => {
    const { status, output } = await analyze(security);
    console.log(`systemd unit: ${/exposure level.*: ([\d.]+)/.exec(output)?.[0]}`);
    expect(status).toBe(0);
  });

  it.each([
    'CapabilityBoundingSet=',
    'SystemCallFilter=@system-service',
    'PrivateDevices=yes',
    'PrivateUsers=yes',
    'RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX',
  ])('leaves it too much access without %s', async (line) => {
    expect((await analyze(security, `\n${line}\n`, '\n')).status).not.toBe(0);
  });

  it('gives the gateway longer to stop than the longest call may take', async () => {
    const { timeouts } = testSettings({ UPSTREAM_URL: 'http://upstream.test', IDP_URL: 'http://idp.test' });
    const seconds = Number(/^TimeoutStopSec=(\d+)$/m.exec(await Bun.file(UNIT).text())?.[1]);
    expect(seconds * 1000).toBeGreaterThan(Math.max(...Object.values(timeouts)));
  });

  it('starts what `bun run start` starts', async () => {
    const unit = await Bun.file(UNIT).text();
    const [, requests, program] = /(\d+)\} exec bun (\S+)$/.exec(manifest.scripts.start) ?? [];
    expect(unit).toContain(`BUN_CONFIG_MAX_HTTP_REQUESTS=${requests}\n`);
    expect(unit).toContain(`${BUN} ${program}\n`);
  });
});
