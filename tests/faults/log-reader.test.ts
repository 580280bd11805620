import { describe, expect, it } from 'bun:test';
import { Readable } from 'node:stream';
import { freePorts } from '../support/free-ports.ts';
import { ORIGIN } from '../support/world.ts';

/** Each has a line of some 300 bytes in the log, so that they fill any pipe many times over. */
const REQUESTS = 3000;

describe.each(['production', 'development'])('a gateway in %s', (mode) => {
  it.each([
    ['stands still', (log: Readable) => log.pause()],
    ['has gone', (log: Readable) => log.destroy()],
  ])('goes on when the reader of its log %s', async (_, leave) => {
    const port = await freePorts(1);
    const child = Bun.spawn([process.execPath, 'src/index.ts'], {
      cwd: new URL('../..', import.meta.url).pathname,
      env: {
        NODE_ENV: mode,
        PORT: String(port),
        HOST: '127.0.0.1',
        UPSTREAM_URL: 'http://127.0.0.1:9',
        IDP_URL: 'http://127.0.0.1:9',
        IDP_CLIENT_ID: 'studio',
        IDP_REDIRECT_URI: `${ORIGIN}/callback`,
        ALLOWED_ORIGINS: ORIGIN,
      },
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'ignore',
    });
    const log = Readable.fromWeb(child.stdout);
    await new Promise<void>((resolve) => {
      log.on('data', (chunk) => {
        if (String(chunk).includes('listens on')) resolve();
      });
    });
    leave(log);
    for (let sent = 0; sent < REQUESTS; sent++) {
      const response = await fetch(`http://127.0.0.1:${port}/api/music/models`, {
        headers: { origin: ORIGIN },
      });
      expect(response.status).toBe(401);
    }
    // The process waits for its last lines to be read.
    log.resume();
    child.kill('SIGTERM');
    expect(await child.exited).toBe(0);
  });
});
