import { afterAll, beforeAll, expect, it } from 'bun:test';
import { readFile } from 'node:fs/promises';
import type net from 'node:net';
import { startGatewayProcess } from '../support/gateway-process.ts';
import { startRawUpstream } from '../support/raw-upstream.ts';
import { describeWith, program } from '../support/requirements.ts';
import { createFolder } from '../support/temporary-folder.ts';
import { ORIGIN, request, SIGNED_IN } from '../support/world.ts';
import { boundsOf, COSTS, COUNTED, type Counts, TRACK_PIECES } from './request-costs.ts';

/**
 * The log is written every 100 ms, which costs objects as well, so a request that takes long costs more of them.
 * Requests in parallel keep that share small on a busy machine.
 */
const LANES = 10;
const WARM_UP = 30;

/** With `--seccomp-bpf` only the system calls that are counted wait for strace. */
const TRACE = 'strace -f --seccomp-bpf -qq -e signal=none -e trace=sendto,sendmsg,writev'.split(' ');
const STRACE = program('strace');
const mayTrace = STRACE.isMet && Bun.spawnSync([...TRACE, '-o', '/dev/null', 'true']).success;
const TRACING = { name: 'the permission to trace a process (ptrace)', isMet: mayTrace };

/** Of each path; a track has only its first piece. */
const PIECE = 'a'.repeat(16 * 1024);
const RESPONSES: Readonly<Record<string, string>> = {
  '/v1/range': responseOf('206 Partial Content', PIECE.repeat(3)),
  '/v1/track': responseOf('200 OK', PIECE, TRACK_PIECES * PIECE.length),
};
/** 1.8 KB, as a catalogue of models. */
const CATALOGUE = responseOf('200 OK', JSON.stringify({ data: 'x'.repeat(1800) }));

function responseOf(status: string, body: string, length = body.length): string {
  const type = body.startsWith('{') ? 'application/json' : 'audio/wav';
  return `HTTP/1.1 ${status}\r\nContent-Type: ${type}\r\nContent-Length: ${length}\r\n\r\n${body}`;
}

/** The next piece of a lane's track is sent when the last one has arrived, so that no piece is split or joined. */
async function startUpstream() {
  const sendPiece = new Map<string, () => void>();
  const respond = (socket: net.Socket, call: string) => {
    const [path = '', lane = ''] = (call.split(' ', 2)[1] ?? '').split('?');
    let unsent = path === '/v1/track' ? TRACK_PIECES - 1 : 0;
    sendPiece.set(lane, () => void (unsent-- > 0 && socket.write(PIECE)));
    socket.write(RESPONSES[path] ?? CATALOGUE);
  };
  const upstream = await startRawUpstream((socket, call) => {
    respond(socket, call);
    socket.on('data', (data) => respond(socket, data.toString()));
  });
  const sendWhatIsRead = async ({ body }: Response, lane: string) => {
    let received = 0;
    for await (const piece of body ?? []) {
      received += piece.byteLength;
      if (received % PIECE.length === 0) sendPiece.get(lane)?.();
    }
  };
  return { ...upstream, sendWhatIsRead };
}

async function startCountedGateway(upstreamUrl: string, sendsFile: string) {
  let report = Promise.withResolvers<readonly string[]>();
  const settings = {
    UPSTREAM_URL: upstreamUrl,
    // Without garbage collection every object stays and can be counted, and without compilation none is optimized away
    // at a moment that depends on the machine's load.
    BUN_JSC_useGC: '0',
    BUN_JSC_useJIT: '0',
    BUN_OPTIONS: `--preload ${import.meta.dir}/heap-report.ts`,
  };
  const onLine = (written: string) => {
    if (written.startsWith('heap: ')) report.resolve(written.split(' '));
  };
  // With -D the gateway keeps the pid of its process, and strace becomes a child of it.
  const gateway = await startGatewayProcess(settings, onLine, [...TRACE, '-D', '-o', sendsFile]);
  return {
    ...gateway,
    async counts(): Promise<Counts> {
      report = Promise.withResolvers();
      gateway.kill('SIGUSR2');
      const [, objects, bytes] = await report.promise;
      const sends = (await readFile(sendsFile, 'utf8')).match(/^\d+ +send/gm)?.length ?? 0;
      return { objects: Number(objects), bytes: Number(bytes), sends };
    },
  };
}

describeWith([STRACE, TRACING], 'what a request costs', () => {
  const stack = new AsyncDisposableStack();
  let upstream: Awaited<ReturnType<typeof startUpstream>>;
  let gateway: Awaited<ReturnType<typeof startCountedGateway>>;
  beforeAll(async () => {
    const { path: folder } = stack.use(await createFolder());
    upstream = stack.use(await startUpstream());
    gateway = stack.use(await startCountedGateway(upstream.url, `${folder}/sends`));
  });
  afterAll(() => stack.disposeAsync());

  it.each(COSTS)('is what is written down: %s', async (name, path, times, cost) => {
    const origin = name === 'refused origin' ? 'http://evil.test' : ORIGIN;
    const send = async (requests: number) => {
      let left = requests;
      const run = async (_: unknown, lane: number) => {
        while (left-- > 0) {
          const url = gateway.url + path + (name === 'track' ? `?${lane}` : '');
          const response = await request(url, { cookie: SIGNED_IN, origin });
          expect(response.ok).toBe(origin === ORIGIN);
          await upstream.sendWhatIsRead(response, `${lane}`);
        }
      };
      await Promise.all(Array.from({ length: LANES }, run));
    };
    await send(WARM_UP);
    const before = await gateway.counts();
    await send(times);
    const after = await gateway.counts();
    for (const count of COUNTED) {
      const counted = (after[count] - before[count]) / times;
      console.log(`${name}: ${Math.round(counted * 10) / 10} ${count}`);
      expect(counted, count).toBeWithin(...boundsOf(cost[count], count));
    }
  });
});
