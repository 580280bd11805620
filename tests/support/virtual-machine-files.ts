/** The files of a machine as `deploy/README.md` describes it, in a folder of their own. */

import { randomBytes } from 'node:crypto';
import { chmod, mkdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Sandbox } from '../../src/demo/sandbox/sandbox.ts';
import { makeCertificate } from './certificate.ts';
import { PATIENT_WITH_REDIS } from './patient-redis-option.ts';
import { SANDBOX_CLIENT } from './sandbox-account.ts';
import { ORIGIN } from './world.ts';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));

/** Makes folders, programs, settings and a certificate. Returns the environment of the machine's commands. */
export async function furnish(root: string, { port, sandbox }: { port: number; sandbox: Sandbox }) {
  for (const folder of ['bin', 'etc/music-gateway', 'opt/music-gateway'])
    await mkdir(`${root}/${folder}`, { recursive: true });
  const programs = {
    systemctl: `exec ${process.execPath} ${PROJECT}/tests/support/stand-in-systemctl.ts "$@"`,
    // It is called for one unit: journalctl -u music-gateway@b ...
    journalctl: `exec tail -n 20 "$ROOT/$2.log"`,
    bun: `exec ${process.execPath} "$@"`,
  };
  for (const [name, command] of Object.entries(programs)) {
    await Bun.write(`${root}/bin/${name}`, `#!/bin/sh\n${command}\n`);
    await chmod(`${root}/bin/${name}`, 0o755);
  }
  const settings = {
    UPSTREAM_URL: sandbox.upstream.url,
    IDP_URL: sandbox.identityProviderUrl,
    IDP_CLIENT_ID: SANDBOX_CLIENT.clientId,
    IDP_REDIRECT_URI: SANDBOX_CLIENT.redirectUri,
    ALLOWED_ORIGINS: ORIGIN,
    COOKIE_KEYS: randomBytes(32).toString('base64url'),
    REDIS_URL_FILE: `${root}/etc/music-gateway/redis-url`,
    BUN_OPTIONS: PATIENT_WITH_REDIS,
  };
  await Bun.write(settings.REDIS_URL_FILE, `redis+unix://${root}/redis.sock\n`);
  await writeSettings(`${root}/etc/music-gateway`, port, settings);
  await makeCertificate(root);
  return {
    PATH: `${root}/bin:${process.env['PATH']}`,
    ROOT: root,
    INSTALLED: `${root}/opt/music-gateway`,
    SETTINGS: `${root}/etc/music-gateway/settings.env`,
    HEALTHY_SECONDS: '2',
    ADMIN_SOCKET: `${root}/admin.sock`,
    CERTIFICATE: `${root}/both.pem`,
    ...haproxyAddresses(port),
    // All visitors have one address, and ask without a pause.
    REQUESTS_PER_10_SECONDS: '1000000',
  };
}

/** The settings of both instances, and the ports of each: the first of six ports is HAProxy's. */
export async function writeSettings(folder: string, port: number, settings: Record<string, string>) {
  await Bun.write(`${folder}/settings.env`, variables({ HOST: '127.0.0.1', ...settings }));
  await Bun.write(`${folder}/a.env`, variables({ PORT: port + 1, METRICS_PORT: port + 3 }));
  await Bun.write(`${folder}/b.env`, variables({ PORT: port + 2, METRICS_PORT: port + 4 }));
}

/** Where HAProxy listens with these ports, and finds the instances. */
export function haproxyAddresses(port: number) {
  return {
    LISTEN: `127.0.0.1:${port}`,
    GATEWAY_A: `127.0.0.1:${port + 1}`,
    GATEWAY_B: `127.0.0.1:${port + 2}`,
    STATISTICS: `127.0.0.1:${port + 5}`,
  };
}

/** The text of an environment file. */
export function variables(values: Readonly<Record<string, string | number>>): string {
  return Object.entries(values)
    .map(([name, value]) => `${name}=${value}\n`)
    .join('');
}
