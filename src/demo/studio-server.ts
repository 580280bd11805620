/** Serves the studio, the demonstration web app, from an origin of its own, as a production one would be. */

import type { StudioConfig } from './studio/config.ts';

export interface StudioServerOptions {
  /** 0: any free port. */
  readonly port: number;
  readonly config: StudioConfig;
}

export interface StudioServer {
  /** Without a trailing slash. */
  readonly url: string;
  stop(): Promise<void>;
}

const SOURCES = `${import.meta.dir}/studio/`;
/** Both show the page: the identity provider sends people to the second. */
const PAGE_PATHS = ['/', '/callback'];
const PAGE = '/index.html';

/** A taken port rejects with the EADDRINUSE error. */
export async function startStudio({ port, config }: StudioServerOptions): Promise<StudioServer> {
  const files = await bundle();
  const page = (await files.get(PAGE)?.text()) ?? '';
  files.delete(PAGE);

  const server = Bun.serve({
    port,
    hostname: 'localhost',
    development: false,
    reusePort: false,
    fetch(request) {
      const { pathname } = new URL(request.url);
      const nonce = crypto.randomUUID();
      const headers = securityHeaders(config, nonce);
      if (request.method !== 'GET' && request.method !== 'HEAD') {
        return new Response(null, { status: 405, headers: { ...headers, allow: 'GET, HEAD' } });
      }
      if (PAGE_PATHS.includes(pathname)) {
        const body = page.replaceAll('<script ', `<script nonce="${nonce}" `);
        return new Response(body, { headers: { ...headers, 'content-type': 'text/html; charset=utf-8' } });
      }
      if (pathname === '/config.json') return Response.json(config, { headers });
      const file = files.get(pathname);
      if (!file) return new Response(null, { status: 404, headers });
      return new Response(file, { headers: { ...headers, 'content-type': file.type } });
    },
  });
  return { url: `http://localhost:${server.port}`, stop: () => server.stop(true) };
}

/** The page with its scripts, styles and worker, by path. */
async function bundle(): Promise<Map<string, Blob>> {
  const { outputs } = await Bun.build({
    entrypoints: [`${SOURCES}index.html`, `${SOURCES}live-audio-worker.ts`],
    minify: true,
    // The worker's name must stay: a service worker is known by it.
    naming: { entry: '[name].[ext]', chunk: '[name]-[hash].[ext]', asset: '[name]-[hash].[ext]' },
  });
  return new Map(outputs.map((output) => [output.path.replace(/^\.?\/?/, '/'), output]));
}

function securityHeaders({ gatewayUrl }: StudioConfig, nonce: string): Record<string, string> {
  const policy = [
    "default-src 'none'",
    "script-src 'self'",
    // wavesurfer.js brings a style element of its own.
    `style-src 'self' 'nonce-${nonce}'`,
    `connect-src 'self' ${gatewayUrl}`,
    `media-src 'self' ${gatewayUrl}`,
    "img-src 'self' data:",
    "worker-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ];
  return {
    'content-security-policy': policy.join('; '),
    'cross-origin-opener-policy': 'same-origin',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-cache',
  };
}
