/** Serves the Studio, the demonstration web app, from its own origin, as a web app in production would be. */

import { coverImage } from './cover-image.ts';
import { sharePreview } from './share-preview.ts';
import type { StudioConfig } from './studio/config.ts';
import { readCoverPath } from './studio/cover.ts';

export interface StudioServerOptions {
  /** 0 picks any free port. */
  readonly port: number;
  readonly config: StudioConfig;
}

export interface StudioServer {
  /** Without a trailing slash. */
  readonly url: string;
  stop(): Promise<void>;
}

const SOURCES = `${import.meta.dir}/studio/`;
const LIVE_AUDIO_WORKER = `${import.meta.dir}/../client/live-audio/live-audio-worker.ts`;
/** Both serve the page: the identity provider redirects to the second one. */
const PAGE_PATHS = ['/', '/callback'];
const PAGE = '/index.html';

/** Rejects with the EADDRINUSE error if the port is taken. */
export async function startStudio({ port, config }: StudioServerOptions): Promise<StudioServer> {
  const files = await bundle();
  // The page is also served at paths with more segments, from where relative addresses would lead elsewhere.
  const page = ((await files.get(PAGE)?.blob.text()) ?? '').replaceAll('"./', '"/');
  files.delete(PAGE);

  const server = Bun.serve({
    port,
    hostname: 'localhost',
    development: false,
    reusePort: false,
    async fetch(request) {
      const address = new URL(request.url);
      const { pathname } = address;
      const nonce = crypto.randomUUID();
      const headers = securityHeaders(config, nonce);
      if (request.method !== 'GET' && request.method !== 'HEAD') {
        return new Response(null, { status: 405, headers: { ...headers, allow: 'GET, HEAD' } });
      }
      const sendPage = async (status: number) => {
        const preview = await sharePreview(address, config.gatewayUrl);
        const sent = page
          .replaceAll('<script ', `<script nonce="${nonce}" `)
          .replace('</head>', () => `${preview}</head>`);
        return new Response(sent, {
          status,
          headers: { ...headers, 'content-type': 'text/html; charset=utf-8' },
        });
      };
      if (PAGE_PATHS.includes(pathname)) return sendPage(200);
      if (pathname === '/config.json') return Response.json(config, { headers });
      const cover = readCoverPath(pathname);
      if (cover) return sendCover(coverImage(cover.look, cover.sound), headers);
      const file = files.get(pathname);
      if (file) return sendFile(file, request, headers);
      // A person who has followed a wrong link gets the page, which says so.
      if (accepts(request, 'accept', 'text/html')) return sendPage(404);
      return new Response(null, { status: 404, headers });
    },
  });
  return { url: `http://localhost:${server.port}`, stop: () => server.stop(true) };
}

/** What its address says never changes. */
function sendCover(image: Buffer<ArrayBuffer>, headers: Record<string, string>): Response {
  const cacheControl = 'public, max-age=31536000, immutable';
  return new Response(image, {
    headers: { ...headers, 'content-type': 'image/png', 'cache-control': cacheControl },
  });
}

interface BundledFile {
  readonly blob: Blob;
  readonly gzipped: Uint8Array<ArrayBuffer>;
}

function sendFile(
  { blob, gzipped }: BundledFile,
  request: Request,
  headers: Record<string, string>,
): Response {
  const common = { ...headers, 'content-type': blob.type, vary: 'accept-encoding' };
  if (!accepts(request, 'accept-encoding', 'gzip')) return new Response(blob, { headers: common });
  return new Response(gzipped, { headers: { ...common, 'content-encoding': 'gzip' } });
}

function accepts({ headers }: Request, name: 'accept' | 'accept-encoding', value: string): boolean {
  return headers.get(name)?.includes(value) === true;
}

/** The page with its scripts, styles and worker, by path. */
async function bundle(): Promise<Map<string, BundledFile>> {
  const { outputs } = await Bun.build({
    entrypoints: [`${SOURCES}index.html`, LIVE_AUDIO_WORKER],
    minify: true,
    // The names of entries have no hash, because the page registers the service worker under a fixed name.
    naming: { entry: '[name].[ext]', chunk: '[name]-[hash].[ext]', asset: '[name]-[hash].[ext]' },
  });
  const files = outputs.map(async (output) => {
    const gzipped = Bun.gzipSync(await output.arrayBuffer());
    return [output.path.replace(/^\.?\/?/, '/'), { blob: output, gzipped }] as const;
  });
  return new Map(await Promise.all(files));
}

function securityHeaders({ gatewayUrl }: StudioConfig, nonce: string): Record<string, string> {
  const policy = [
    "default-src 'none'",
    "script-src 'self'",
    // wavesurfer.js adds a style element to the page.
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
