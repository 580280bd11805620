import { describe, expect, it } from 'bun:test';
import { fastForward } from '../fake-time.ts';
import { ORDER, type Respond, receive, rejection, stubGateway } from './gateway-stub.ts';
import { audio, begun, CREATION, rest, TRACK } from './track.ts';

const CONTENT = 'GET /api/upstream/v1/music/creations/c-7/content';
const BROKEN = ['waiting', 'arriving', 'recovering', 'complete'];
const KEY = { idempotencyKey: 'a-key' };

const respond =
  (status: number, headers: HeadersInit = {}): Respond =>
  () =>
    new Response(null, { status, headers });
const lost: Respond = () => Promise.reject(new TypeError('Failed to fetch'));
/** A request that gets no response, until the client gives it up. */
const silent: Respond = ({ signal }) =>
  new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));

describe('a track whose connection breaks', () => {
  it.each<[what: string, responses: Respond[], ranges: string[]]>([
    ['before its first byte', [begun(0), rest()], ['0-']],
    ['after its first byte', [begun(1), rest()], ['0-']],
    ['in its middle', [begun(2_000), rest()], ['976-']],
    ['after its last byte', [begun(4_000), rest()], ['2976-']],
    ['without a break that shows', [begun(2_000, 'stalls'), rest()], ['976-']],
    [
      'twice',
      [begun(2_000), rest({ end: 3_000, ending: 'breaks', etag: '"a"' }), rest({ etag: '"a"' })],
      ['976-', '3000- if "a"'],
    ],
    [
      'twice, with a weak validator',
      [begun(2_000), rest({ end: 3_000, ending: 'breaks', etag: 'W/"a"' }), rest({ etag: 'W/"b"' })],
      ['976-', '1976-'],
    ],
    [
      'twice, the second time without one that shows',
      [begun(2_000), rest({ end: 3_000, ending: 'stalls' }), rest()],
      ['976-', '1976-'],
    ],
    ['and whose rest ends early', [begun(2_000), rest({ end: 3_000 }), rest()], ['976-', '1976-']],
    [
      'and whose rest, of a length that is not known, ends early',
      [begun(2_000), rest({ end: 3_000, range: 'bytes 976-3999/*' }), rest()],
      ['976-', '1976-'],
    ],
    [
      'and whose rest is not there at first',
      [begun(2_000), respond(409), lost, respond(503), silent, rest()],
      new Array<string>(5).fill('976-'),
    ],
    [
      'and whose session has to be renewed',
      [begun(2_000), respond(401, { 'proxy-status': 'gateway; error=dns_error' }), rest()],
      ['976-', '976-'],
    ],
  ])('%s is whole, and is ordered once', async (_, responses, ranges) => {
    const { client, sent } = stubGateway(responses);
    const { audio: received, states } = await fastForward(() => receive(client));
    expect(received).toEqual(TRACK);
    expect([...states.slice(0, 3), states.at(-1)]).toEqual(BROKEN);
    expect(sent.slice(1).map(({ headers }) => rangeOf(headers))).toEqual(ranges);
    for (const { call, init } of sent.slice(1)) expect([call, init.cache]).toEqual([CONTENT, 'no-store']);
  });

  it('before the headers is ordered again under the same key', async () => {
    const { client, sent } = stubGateway([lost, begun(4_000, 'ends')]);
    const { audio: received, states } = await fastForward(() => receive(client));
    expect(received).toEqual(TRACK);
    expect(states).toEqual(['waiting', 'recovering', 'arriving', 'complete']);
    const [first, second] = sent.map(({ call, headers }) => call + headers.get('idempotency-key'));
    expect(second).toBe(first ?? '');
  });

  it.each<[string, Respond]>([
    ['as a range', rest()],
    ['as a whole', () => new Response(TRACK)],
  ])(
    'because the gateway has no memory for it is read from the creation %s, not ordered again',
    async (_, content) => {
      const full = respond(503, { ...CREATION, 'retry-after': '5' });
      const { client, sent } = stubGateway([full, silent, respond(409), content]);
      const { audio: received, states, ...generation } = await fastForward(() => receive(client));
      expect(received).toEqual(TRACK);
      expect(states).toEqual(['waiting', 'recovering', 'arriving', 'complete']);
      expect(generation).toEqual({ creationId: 'c-7', generationId: null, contentType: 'audio/mpeg' });
      expect(sent.slice(1).map(({ call, headers }) => `${call} ${rangeOf(headers)}`)).toEqual(
        new Array<string>(3).fill(`${CONTENT} 0-`),
      );
    },
  );
});

function rangeOf(headers: Headers): string {
  const [range, validator] = [headers.get('range'), headers.get('if-range')];
  return `${range?.replace('bytes=', '')}${validator ? ` if ${validator}` : ''}`;
}

describe('the audio after a break', () => {
  const known = [begun(2_000), rest({ end: 3_000, ending: 'breaks', etag: '"a"' })];

  it.each<[what: string, responses: Respond[]]>([
    ['of another length', [...known, rest({ etag: '"a"', range: 'bytes 3000-3999/4001' })]],
    ['from another position', [begun(2_000), rest({ range: 'bytes 7-3999/4000' })]],
    ['of more bytes than its length', [begun(2_000), rest({ range: 'bytes 976-3999/3000' })]],
    ['whole instead of its rest', [begun(2_000), () => new Response(TRACK)]],
    ['without the range that was asked for', [begun(2_000), respond(416)]],
    ['of other music', [begun(2_000), rest({ of: TRACK.map((byte) => byte ^ 1) })]],
    [
      'of other music, after no memory for an order',
      [respond(503, CREATION), rest({ range: 'bytes 7-3999/4000' })],
    ],
    ['with another validator', [...known, rest({ etag: '"b"' })]],
    ['with a weak validator', [...known, rest({ etag: 'W/"a"' })]],
    ['without a validator', [...known, rest()]],
  ])('%s ends the generation instead of being appended', async (_, responses) => {
    const error = await rejection(fastForward(() => receive(stubGateway(responses).client, KEY)));
    expect(error).toMatchObject({ name: 'RecoveryError', code: 'changed', creationId: 'c-7', ...KEY });
  });
});

describe('a recovery', () => {
  it.each<[what: string, responses: Respond[], code: string, creationId: string | null, status: number]>([
    ['lasts a minute', [begun(2_000), lost], 'gave_up', 'c-7', 0],
    ['lasts a minute before the headers', [lost], 'gave_up', null, 0],
    [
      'lasts a minute without a byte',
      [begun(2_000), rest({ end: 0, ending: 'stalls' })],
      'gave_up',
      'c-7',
      0,
    ],
    ['has no id of the creation', [() => new Response(audio(TRACK, 'breaks'))], 'gave_up', null, 0],
    ['gets a refusal of the rest', [begun(2_000), respond(404)], 'refused', 'c-7', 404],
    ['gets a refusal of the repeated order', [lost, respond(402)], 'refused', null, 402],
    ['finds that the session has ended', [begun(2_000), respond(401)], 'refused', 'c-7', 401],
  ])(
    'that %s ends with an error that has the key under which nothing is paid twice',
    async (_, responses, code, creationId, status) => {
      const { client, sent } = stubGateway(responses);
      const options = { ...KEY, giveUpAfterMs: 60_000 };
      const error = await rejection(fastForward(() => receive(client, options)));
      expect(error).toMatchObject({ name: 'RecoveryError', code, creationId, ...KEY, cause: { status } });
      const span = (sent.at(-1)?.at ?? 0) - (sent[0]?.at ?? 0);
      if (code === 'gave_up' && sent.length > 1) expect(span).toBeWithin(30_000, 85_000);
      else expect(sent.length).toBeLessThanOrEqual(2);
    },
  );

  it('does not order again when the caller rejects that, with the reason', async () => {
    const mine = new Error('another account is signed in');
    const { client, sent } = stubGateway([respond(503)]);
    const beforeRepeat = () => Promise.reject(mine);
    expect(await rejection(fastForward(() => client.generate(ORDER, { beforeRepeat })))).toBe(mine);
    expect(sent).toHaveLength(1);
  });

  it('ends at once when its signal is aborted, with the reason', async () => {
    const abort = new AbortController();
    const responses = [
      begun(2_000),
      () => {
        abort.abort('left');
        return lost({});
      },
    ];
    const { client, sent } = stubGateway(responses);
    expect(await rejection(fastForward(() => receive(client, { signal: abort.signal })))).toBe('left');
    expect(sent).toHaveLength(2);
  });
});
