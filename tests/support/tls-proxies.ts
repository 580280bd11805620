/** The TLS proxies of `deploy/`, started for real with a certificate of their own in front of a gateway. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { freePorts } from './free-ports.ts';

/** What nginx takes a client's address from when a test sends it: this machine has only one IPv6 address for sure. */
export const CLIENT_ADDRESS_HEADER = 'x-test-address';

const DEPLOY = fileURLToPath(new URL('../../deploy', import.meta.url));

export interface TlsProxy extends AsyncDisposable {
  readonly port: number;
  /** What a client must trust. */
  readonly certificate: string;
}

/** What it takes to run a proxy in a folder that is its own: the command, and its environment. */
interface Start {
  readonly command: string[];
  readonly environment: Record<string, string>;
}

const MOST_LOG_CHARACTERS = 10_000;

type Prepare = (folder: string, port: number, gatewayPort: number) => Promise<Start>;

export const TLS_PROXIES = [
  { program: 'nginx', file: `${DEPLOY}/nginx.conf`, prepare: prepareNginx },
  { program: 'haproxy', file: `${DEPLOY}/two-instances/haproxy.cfg`, prepare: prepareHaproxy },
] as const;

export async function startTlsProxy(prepare: Prepare, gatewayPort: number): Promise<TlsProxy> {
  const folder = await mkdtemp(`${tmpdir()}/tls-proxy-`);
  const certificate = await makeCertificate(folder);
  const port = await freePorts(2);
  const { command, environment } = await prepare(folder, port, gatewayPort);
  const proxy = Bun.spawn(command, {
    env: { PATH: process.env['PATH'], ...environment },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  // Read all the time: a proxy whose log nobody takes stands still.
  let errors = '';
  void (async () => {
    for await (const text of proxy.stderr.pipeThrough(new TextDecoderStream())) {
      errors = (errors + text).slice(-MOST_LOG_CHARACTERS);
    }
  })();
  const health = `https://127.0.0.1:${port}/api/health`;
  while (!(await fetch(health, { tls: { ca: certificate } }).catch(() => undefined))?.ok) {
    if (proxy.exitCode !== null) throw new Error(`${command[0]} ended:\n${errors}`);
    await Bun.sleep(20);
  }
  return {
    port,
    certificate,
    async [Symbol.asyncDispose]() {
      proxy.kill('SIGTERM');
      await proxy.exited;
      await rm(folder, { recursive: true });
    },
  };
}

/** `certificate.pem` and `key.pem`, and both in `both.pem`; gives the certificate. */
async function makeCertificate(folder: string): Promise<string> {
  const [certificate, key] = [`${folder}/certificate.pem`, `${folder}/key.pem`];
  const algorithm = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const subject = ['-subj', '/CN=test', '-addext', 'subjectAltName=IP:127.0.0.1'];
  const files = ['-keyout', key, '-out', certificate];
  const made = Bun.spawn(['openssl', 'req', '-x509', ...algorithm, ...subject, ...files], {
    stderr: 'ignore',
  });
  if ((await made.exited) !== 0) throw new Error('openssl made no certificate');
  const text = await Bun.file(certificate).text();
  await Bun.write(`${folder}/both.pem`, text + (await Bun.file(key).text()));
  return text;
}

/** The file is for nginx's `conf.d`: names of the machine that it is written for are changed, and nothing else. */
async function prepareNginx(folder: string, port: number, gatewayPort: number): Promise<Start> {
  const changes = {
    'listen 443 ': `listen 127.0.0.1:${port} `,
    'listen [::]:443 ': `listen 127.0.0.1:${port + 1} `,
    '/etc/letsencrypt/live/api.studio.example/fullchain.pem': `${folder}/certificate.pem`,
    '/etc/letsencrypt/live/api.studio.example/privkey.pem': `${folder}/key.pem`,
    'server 127.0.0.1:4175 ': `server 127.0.0.1:${gatewayPort} `,
  };
  let site = await Bun.file(`${DEPLOY}/nginx.conf`).text();
  for (const [from, to] of Object.entries(changes)) {
    if (!site.includes(from)) throw new Error(`nginx.conf has no ${from}`);
    site = site.replace(from, to);
  }
  await Bun.write(`${folder}/site.conf`, site);
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (kind) => `${kind}_temp_path ${folder}/${kind};`,
  );
  const address = `set_real_ip_from 127.0.0.0/8; real_ip_header ${CLIENT_ADDRESS_HEADER};`;
  const http = `http { access_log off; ${address} ${paths.join(' ')} include ${folder}/site.conf; }`;
  const main = `user root; daemon off; pid ${folder}/pid; error_log stderr; events { worker_connections 16384; } ${http}`;
  await Bun.write(`${folder}/nginx.conf`, main);
  return { command: ['nginx', '-c', `${folder}/nginx.conf`], environment: {} };
}

async function prepareHaproxy(folder: string, port: number, gatewayPort: number): Promise<Start> {
  const environment = {
    CERTIFICATE: `${folder}/both.pem`,
    LISTEN: `127.0.0.1:${port}`,
    GATEWAY_A: `127.0.0.1:${gatewayPort}`,
    GATEWAY_B: `127.0.0.1:${gatewayPort}`,
    STATISTICS: `127.0.0.1:${port + 1}`,
    ADMIN_SOCKET: `${folder}/admin.sock`,
  };
  return { command: ['haproxy', '-f', `${DEPLOY}/two-instances/haproxy.cfg`], environment };
}

/** HAProxy whose patience with a client is one second, so that a test can wait for it. */
export async function prepareImpatientHaproxy(
  folder: string,
  port: number,
  gatewayPort: number,
): Promise<Start> {
  const { environment } = await prepareHaproxy(folder, port, gatewayPort);
  const file = `${folder}/haproxy.cfg`;
  const text = await Bun.file(`${DEPLOY}/two-instances/haproxy.cfg`).text();
  await Bun.write(file, text.replace(/^( *timeout client) .*/m, '$1 1s'));
  return { command: ['haproxy', '-f', file], environment };
}
