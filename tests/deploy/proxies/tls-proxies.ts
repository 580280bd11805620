/** The TLS proxies of `deploy/`, started for real in front of a gateway, and their clients. */

import { once } from 'node:events';
import http2 from 'node:http2';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { $ } from 'bun';
import { openSocket } from '../../load/raw-client.ts';
import { CERTIFICATE } from '../../support/certificate.ts';
import { ROOT } from '../../support/documents.ts';
import { eventually } from '../../support/eventually.ts';
import { freePorts } from '../../support/free-ports.ts';
import { isUp } from '../../support/is-up.ts';
import { createFolder } from '../../support/temporary-folder.ts';
import { ORIGIN, REQUIRED } from '../../support/world.ts';

/** Clients trust any certificate. */
export const TRUST = { rejectUnauthorized: false };
/** In tests nginx reads a client's address from this header, because the machine may have only one IPv6 address. */
export const CLIENT_ADDRESS_HEADER = 'x-test-address';

const NGINX = `${ROOT}deploy/nginx.conf`;
const HAPROXY = `${ROOT}deploy/two-instances/haproxy.cfg`;

export type TlsProxy = Awaited<ReturnType<typeof startTlsProxy>>;

/** Texts of a configuration file, and what a test needs instead. */
type Changes = Readonly<Record<string, string>>;
/** Writes the configuration into a folder of its own. Returns the command that starts the proxy with it. */
type Prepare = (folder: string, port: number, gatewayPort: number, changes: Changes) => Promise<string[]>;

/** `hasty`: a second for clients that stall, so that a test can wait for it. */
export const TLS_PROXIES = [
  {
    program: 'nginx',
    prepare: prepareNginx,
    hasty: { 'body_timeout 10s': 'body_timeout 1s', '  send_timeout 300s': '  send_timeout 1s' },
  },
  {
    program: 'haproxy',
    prepare: prepareHaproxy,
    hasty: { 'body time 10s': 'body time 1s', 'timeout client 300s': 'timeout client 1s' },
  },
];

export async function startTlsProxy(prepare: Prepare, gatewayPort: number, changes: Changes = {}) {
  await using stack = new AsyncDisposableStack();
  const { path: folder } = stack.use(await createFolder());
  const port = await freePorts(2);
  const command = await prepare(folder, port, gatewayPort, changes);
  const errors = Bun.file(`${folder}/errors.log`);
  const proxy = stack.use(Bun.spawn(command, { stdio: ['ignore', 'ignore', errors] }));
  const url = `https://127.0.0.1:${port}`;
  const isReady = async () => {
    if (proxy.exitCode !== null) throw new Error(`${command[0]} ended:\n${await errors.text()}`);
    return isUp(url);
  };
  await eventually(isReady, `${command[0]} to pass requests on`);
  const started = stack.move();
  return {
    port,
    url,
    /** Sends bytes from an address of this machine, such as 127.0.0.2, for limits that are per address. */
    send(localAddress: string, bytes: string) {
      const socket = openSocket(new URL(url), localAddress);
      socket.write(bytes);
      return socket;
    },
    /** HTTP/2 on one connection. */
    openClient(localAddress: string) {
      const options = { localAddress, ...TRUST };
      const session = http2.connect(url, options);
      return {
        /** Resolves when the response has ended. */
        async request(
          method: string,
          path: string,
          headers: Record<string, string> = {},
          { body, ...options }: http2.ClientSessionRequestOptions & { body?: AsyncIterable<Uint8Array> } = {},
        ) {
          const sent = { ':method': method, ':path': path, origin: ORIGIN, ...headers };
          const stream = session.request(sent, options);
          // Nobody waits for the rest of a body that was refused.
          if (body)
            Readable.from(body)
              .pipe(stream)
              .on('error', () => {});
          else stream.end();
          const [head]: http2.IncomingHttpHeaders[] = await once(stream, 'response');
          return { status: Number(head?.[':status']), headers: head, body: await text(stream) };
        },
        [Symbol.dispose]: () => session.destroy(),
      };
    },
    /** Of HAProxy. */
    statistics: `http://127.0.0.1:${port + 1}/`,
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

/** The origins that a gateway allows in tests. Returns the path of the file. */
export async function writeOrigins(folder: string): Promise<string> {
  const { ALLOWED_ORIGINS } = REQUIRED;
  const path = `${folder}/origins`;
  await $`sh ${ROOT}deploy/origins.sh > ${path}`.env({ ...process.env, ALLOWED_ORIGINS });
  return path;
}

async function changed(file: string, changes: Changes): Promise<string> {
  let text = await Bun.file(file).text();
  for (const [from, to] of Object.entries(changes)) {
    if (!text.includes(from)) throw new Error(`${file} has no ${from}`);
    text = text.replace(from, to);
  }
  return text;
}

/** The file is for nginx's `conf.d`: only the names of the machine that it was written for are changed. */
async function prepareNginx(folder: string, port: number, gatewayPort: number, changes: Changes) {
  const site = await changed(NGINX, {
    'listen 443 ': `listen 127.0.0.1:${port} `,
    'listen [::]:443 ': `listen 127.0.0.1:${port + 1} `,
    '/etc/letsencrypt/live/api.studio.example/fullchain.pem': CERTIFICATE,
    '/etc/letsencrypt/live/api.studio.example/privkey.pem': CERTIFICATE,
    '/etc/music-gateway/origins': await writeOrigins(folder),
    'server 127.0.0.1:4175 ': `server 127.0.0.1:${gatewayPort} `,
    ...changes,
  });
  await Bun.write(`${folder}/site.conf`, site);
  const kinds = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  const paths = kinds.map((kind) => `${kind}_temp_path ${folder}/${kind};`).join(' ');
  const address = `set_real_ip_from 127.0.0.0/8; real_ip_header ${CLIENT_ADDRESS_HEADER};`;
  const http = `http { access_log off; ${address} ${paths} include ${folder}/site.conf; }`;
  const main = `user root; daemon off; pid ${folder}/pid; error_log stderr; events { worker_connections 16384; } ${http}`;
  await Bun.write(`${folder}/nginx.conf`, main);
  return ['nginx', '-c', `${folder}/nginx.conf`];
}

export async function prepareHaproxy(folder: string, port: number, gatewayPort: number, changes: Changes) {
  await Bun.write(`${folder}/haproxy.cfg`, await changed(HAPROXY, changes));
  const environment = {
    CERTIFICATE,
    ORIGINS: await writeOrigins(folder),
    LISTEN: `127.0.0.1:${port}`,
    GATEWAY_A: `127.0.0.1:${gatewayPort}`,
    GATEWAY_B: `127.0.0.1:${gatewayPort}`,
    STATISTICS: `127.0.0.1:${port + 1}`,
    ADMIN_SOCKET: `${folder}/admin.sock`,
  };
  const variables = Object.entries(environment).map(([name, value]) => `${name}=${value}`);
  return ['env', ...variables, 'haproxy', '-f', `${folder}/haproxy.cfg`];
}
