import { afterAll, beforeAll, expect, it } from 'bun:test';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import type net from 'node:net';
import { tmpdir } from 'node:os';
import { startGatewayProcess } from '../support/gateway-process.ts';
import { startRawUpstream } from '../support/raw-upstream.ts';
import { describeWith, program, type Requirement } from '../support/requirements.ts';
import { ORIGIN, request, SIGNED_IN } from '../support/world.ts';

/**
 * What one request costs: JavaScript objects of every type, what these hold outside the heap, and system calls that send
 * on a socket. These are counts, so that they hardly depend on the machine and not at all on its speed. Work that makes
 * no object and sends nothing is not counted: only `bun run bench` sees it.
 */
interface Counts {
  readonly objects: number;
  readonly bytes: number;
  readonly sends: number;
}

const TRACK_PIECES = 100;
/**
 * One send is the call to the upstream. The others go to the client: a complete response is one, a range is a head, a
 * piece and an end, and a track is a head with the first piece, the other pieces, and an end. More sends are small
 * packets, each of which may wait for the network.
 */
const ROWS: readonly (readonly [name: string, path: string, times: number, cost: Counts])[] = [
  ['models', '/api/music/models', 500, { objects: 202, bytes: 2_480, sends: 2 }],
  ['session check', '/api/auth/session', 500, { objects: 209.8, bytes: 2_480, sends: 2 }],
  ['short proxied call', '/api/upstream/v1/models', 500, { objects: 228.8, bytes: 2_480, sends: 2 }],
  ['refused origin', '/api/music/models', 500, { objects: 113, bytes: 770, sends: 1 }],
  ['range of 48 KB', '/api/upstream/v1/range', 200, { objects: 289.7, bytes: 50_300, sends: 4 }],
  ['track', '/api/upstream/v1/track', 10, { objects: 1_212, bytes: 1_658_400, sends: TRACK_PIECES + 2 }],
];
/** The noise is less: 0.6 % of the objects beside busy loops, 5 % of the bytes. A full socket could split a send. */
const MORE = { objects: 1.015, bytes: 1.1, sends: 1.015 };
/** When a request costs less than this, its row is too high to notice a later loss of 15 %: write down the new figure. */
const LESS = 0.9;
/**
 * The log is written every 100 ms, which costs objects as well, so a request that takes long costs more of them.
 * Requests in parallel keep that share small on a busy machine.
 */
const LANES = 10;
const WARM_UP = 30;

const TRACE = ['strace', '-f', '-qq', '-e', 'signal=none', '-e', 'trace=sendto,sendmsg,writev'];
const STRACE = program('strace');
/** No program, but CI must have it all the same: a container without it would guard nothing. */
const TRACING: Requirement = {
  name: 'the permission to trace a process (ptrace)',
  isMet: STRACE.isMet && Bun.spawnSync([...TRACE, '-o', '/dev/null', 'true']).success,
};

/** 1.8 KB, as a catalogue of models. */
const CATALOGUE = JSON.stringify({
  data: Array.from({ length: 18 }, (_, at) => ({ id: `model-${at}`, name: 'x'.repeat(60) })),
});
const PIECE = 'a'.repeat(16 * 1024);

/** Sends the next piece of a track when the last one has arrived, so that no piece is split or joined. */
async function startUpstream() {
  let sendPiece: () => unknown = () => {};
  let unsent = 0;
  const head = (status: string, type: string, length: number) =>
    `HTTP/1.1 ${status}\r\nContent-Type: ${type}\r\nContent-Length: ${length}\r\n\r\n`;
  const responseTo = (call: string) => {
    if (call.startsWith('GET /v1/range'))
      return head('206 Partial Content', 'audio/wav', 3 * PIECE.length) + PIECE.repeat(3);
    if (call.startsWith('GET /v1/track'))
      return head('200 OK', 'audio/wav', TRACK_PIECES * PIECE.length) + PIECE;
    return head('200 OK', 'application/json', CATALOGUE.length) + CATALOGUE;
  };
  const respond = (socket: net.Socket, call: string) => {
    unsent = call.startsWith('GET /v1/track') ? TRACK_PIECES - 1 : 0;
    sendPiece = () => socket.write(PIECE);
    socket.write(responseTo(call));
  };
  const upstream = await startRawUpstream((socket, call) => {
    respond(socket, call);
    socket.on('data', (data) => respond(socket, data.toString()));
  });
  /** @param bytes of a track that have been received */
  const onReceived = (bytes: number) => {
    if (unsent === 0 || bytes < (TRACK_PIECES - unsent) * PIECE.length) return;
    unsent--;
    sendPiece();
  };
  return { ...upstream, onReceived };
}

async function startCountedGateway(upstreamUrl: string, sendsFile: string) {
  let line = Promise.withResolvers<RegExpExecArray>();
  const settings = {
    UPSTREAM_URL: upstreamUrl,
    // Without garbage collection every object stays and can be counted, and without compilation none is optimized away
    // at a moment that depends on the machine's load.
    BUN_JSC_useGC: '0',
    BUN_JSC_useJIT: '0',
    BUN_OPTIONS: `--preload ${import.meta.dir}/heap-report.ts`,
  };
  const onLine = (written: string) => {
    const report = /^heap: (\d+) objects, (\d+) bytes$/.exec(written);
    if (report) line.resolve(report);
  };
  // With -D the gateway keeps the pid of its process, and strace becomes a child of it.
  const gateway = await startGatewayProcess(settings, onLine, [...TRACE, '-D', '-o', sendsFile]);
  return {
    ...gateway,
    async counts(): Promise<Counts> {
      line = Promise.withResolvers();
      gateway.kill('SIGUSR2');
      const [, objects, bytes] = await line.promise;
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
    const folder = await mkdtemp(`${tmpdir()}/sends-`);
    stack.defer(() => rm(folder, { recursive: true }));
    upstream = stack.use(await startUpstream());
    gateway = stack.use(await startCountedGateway(upstream.url, `${folder}/sends`));
  });
  afterAll(() => stack.disposeAsync());

  it.each(ROWS)('is what is written down: %s', async (name, path, times, cost) => {
    const isRefused = name === 'refused origin';
    const call = async () => {
      const origin = isRefused ? 'http://evil.test' : ORIGIN;
      const response = await request(gateway.url + path, { cookie: SIGNED_IN, origin });
      expect(response.ok).toBe(!isRefused);
      let received = 0;
      for await (const piece of response.body ?? []) {
        received += piece.byteLength;
        upstream.onReceived(received);
      }
    };
    const send = async (requests: number) => {
      let left = requests;
      const lane = async () => {
        while (left-- > 0) await call();
      };
      // Only one track at a time can be sent piece by piece.
      await Promise.all(Array.from({ length: name === 'track' ? 1 : LANES }, lane));
    };
    await send(WARM_UP);
    const before = await gateway.counts();
    await send(times);
    const after = await gateway.counts();
    for (const count of ['objects', 'bytes', 'sends'] as const) {
      const counted = (after[count] - before[count]) / times;
      console.log(`${name}: ${Math.round(counted * 10) / 10} ${count}`);
      expect(counted, count).toBeWithin(cost[count] * LESS, cost[count] * MORE[count]);
    }
  });
});
