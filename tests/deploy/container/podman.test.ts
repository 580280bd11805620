import { expect, it } from 'bun:test';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describeWith, program } from '../../support/requirements.ts';

const PODMAN = fileURLToPath(new URL('podman.ts', import.meta.url));
const RUN = `
  const { Podman } = await import(${JSON.stringify(PODMAN)});
  const podman = new Podman();
  await podman.run('info');
  console.log(podman.folder);
  setInterval(() => {}, 1000);`;

describeWith([program('podman')], 'a run with podman', () => {
  it.each(['SIGINT', 'SIGTERM'] as const)('leaves nothing behind when %s interrupts it', async (signal) => {
    const run = Bun.spawn([process.execPath, '-e', RUN], { stdio: ['ignore', 'pipe', 'inherit'] });
    const { value } = await run.stdout.pipeThrough(new TextDecoderStream()).getReader().read();
    const folder = value?.trim() ?? '';
    expect(existsSync(folder)).toBe(true);
    run.kill(signal);
    await run.exited;
    expect(run.signalCode).toBe(signal);
    expect(existsSync(folder)).toBe(false);
  });
});
