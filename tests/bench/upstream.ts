/** The upstream: an nginx with files of known sizes. */

import { randomBytes } from 'node:crypto';
import { NGINX } from './contenders.ts';
import { OTHER_CORE, start } from './processes.ts';

export const TRACK_BYTES = 10 * 1000 * 1000;
/** None is a multiple of 64 KB: such a body leaves a last small packet on loopback, which can wait 40 ms. */
export const BODIES = [
  { size: 'empty', file: '0.bin', bytes: 0 },
  { size: '2 KB', file: '2k.bin', bytes: 2 * 1024 },
  { size: '16 KB', file: '16k.bin', bytes: 16 * 1024 },
  { size: '48 KB', file: '48k.bin', bytes: 48 * 1024 },
  { size: '200 KB', file: '200k.bin', bytes: 200 * 1024 },
  { size: '1 MB', file: '1m.bin', bytes: 1_000_000 },
];

const TRACKS = [
  { file: 'track.mp3', bytes: TRACK_BYTES },
  { file: '6500k.bin', bytes: 6_500_000 },
];

/** As long as a small signed token is. */
export const ACCESS_TOKEN = `fresh.${'eyJhbGciOiJFUzI1NiJ9'.repeat(20)}`;

/** @param far where it runs, when that is another network namespace: its address, and the start of a command there */
export async function startUpstream(
  folder: string,
  far?: { readonly host: string; readonly prefix: readonly string[] },
) {
  for (const { file, bytes } of [...TRACKS, ...BODIES]) {
    await Bun.write(`${folder}/files/${file}`, randomBytes(bytes));
  }
  await Bun.write(`${folder}/files/models.json`, JSON.stringify({ data: 'x'.repeat(1832) }));
  await Bun.write(
    `${folder}/files/me.json`,
    JSON.stringify({ data: { id: 'user-1', name: 'x'.repeat(266) } }),
  );
  const values = { accessToken: ACCESS_TOKEN, files: `${folder}/files` };
  const [program = '', ...args] = [...(far?.prefix ?? []), NGINX.program, ...NGINX.args];
  const place = { folder, upstreamUrl: '', ...(far && { host: far.host }) };
  return start({ program, args, template: 'upstream.conf', values }, place, OTHER_CORE);
}
