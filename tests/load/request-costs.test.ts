import { afterAll, beforeAll, expect, it } from 'bun:test';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import type net from 'node:net';
import { tmpdir } from 'node:os';
import { startGatewayProcess } from '../support/gateway-process.ts';
import { startRawUpstream } from '../support/raw-upstream.ts';
import { describeWith, machine, program } from '../support/requirements.ts';
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
  ['models', '/api/music/models', 500, { objects: 209.9, bytes: 2_480, sends: 2 }],
  ['session check', '/api/auth/session', 500, { objects: 214.7, bytes: 2_480, sends: 2 }],
  ['short proxied call', '/api/upstream/v1/models', 500, { objects: 231.7, bytes: 2_480, sends: 2 }],
  ['refused origin', '/api/music/models', 500, { objects: 113, bytes: 770, sends: 1 }],
  ['range of 48 KB', '/api/upstream/v1/range', 200, { objects: 293.3, bytes: 50_300, sends: 4 }],
  ['track', '/api/upstream/v1/track', 10, { objects: 1_326, bytes: 1_658_400, sends: TRACK_PIECES + 2 }],
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
const TRACING = machine(
  'the permission to trace a process (ptrace)',
  STRACE.isMet && Bun.spawnSync([...TRACE, '-o', '/dev/null', 'true']).success,
);

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

/** The next piece of a track is sent when the last one has arrived, so that no piece is split or joined. */
async function startUpstream() {
  let sendPiece = () => {};
  const respond = (socket: net.Socket, call: string) => {
    const path = call.split(' ', 2)[1] ?? '';
    let unsent = path === '/v1/track' ? TRACK_PIECES - 1 : 0;
    sendPiece = () => void (unsent-- > 0 && socket.write(PIECE));
    socket.write(RESPONSES[path] ?? CATALOGUE);
  };
  const upstream = await startRawUpstream((socket, call) => {
    respond(socket, call);
    socket.on('data', (data) => respond(socket, data.toString()));
  });
  const sendWhatIsRead = async ({ body }: Response) => {
    let received = 0;
    for await (const piece of body ?? []) {
      received += piece.byteLength;
      if (received % PIECE.length === 0) sendPiece();
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
    const folder = await mkdtemp(`${tmpdir()}/sends-`);
    stack.defer(() => rm(folder, { recursive: true }));
    upstream = stack.use(await startUpstream());
    gateway = stack.use(await startCountedGateway(upstream.url, `${folder}/sends`));
  });
  afterAll(() => stack.disposeAsync());

  it.each(ROWS)('is what is written down: %s', async (name, path, times, cost) => {
    const origin = name === 'refused origin' ? 'http://evil.test' : ORIGIN;
    const send = async (requests: number) => {
      let left = requests;
      const lane = async () => {
        while (left-- > 0) {
          const response = await request(gateway.url + path, { cookie: SIGNED_IN, origin });
          expect(response.ok).toBe(origin === ORIGIN);
          await upstream.sendWhatIsRead(response);
        }
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
