import { expect, it } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';

const ADMIN = new URL('../../../deploy/two-instances/admin.sh', import.meta.url).pathname;

it('deploy/two-instances/admin.sh sends its command, and runs nothing of the folder that it is called in', async () => {
  const folder = await mkdtemp(`${tmpdir()}/admin-`);
  const received = Promise.withResolvers<string>();
  const unix = `${folder}/admin.sock`;
  using _ = Bun.listen({
    unix,
    socket: {
      data(socket, data) {
        received.resolve(data.toString());
        socket.end('done');
      },
    },
  });
  await Bun.write(`${folder}/bunfig.toml`, 'preload = ["./foreign.ts"]');
  await Bun.write(`${folder}/foreign.ts`, "await Bun.write(import.meta.dir + '/has-run', '');");
  const admin = Bun.spawn(['sh', ADMIN, 'show info'], {
    cwd: folder,
    env: { ...process.env, ADMIN_SOCKET: unix },
    stdout: 'pipe',
  });
  expect(await received.promise).toBe('show info\n');
  expect(await admin.stdout.text()).toBe('done');
  expect(await Bun.file(`${folder}/has-run`).exists()).toBe(false);
  await rm(folder, { recursive: true });
});
