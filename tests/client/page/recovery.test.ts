import { expect, it } from 'bun:test';
import { fastForward } from '../fake-time.ts';
import { lost, type Respond, receive, rejection, respond, stubGateway } from './gateway-stub.ts';
import { audio, begun, CREATION, rest, TRACK } from './track.ts';

const RECORD = 'GET /api/upstream/v1/music/creations/c-7';
const CONTENT = `${RECORD}/content`;
const KEY = { idempotencyKey: 'a-key' };

/** No response, until the client gives the request up. */
const silent: Respond = ({ signal }) =>
  new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));
const unrefreshed = respond(401, { 'proxy-status': 'gateway; error=dns_error' });
const full = respond(503, { ...CREATION, 'retry-after': '5' });
const whole: Respond = () => new Response(TRACK);
const half = begun(2_000);
const conflict = respond(409);
const unknown = respond(404);
const being = respond(200, {}, '{"data":{"status":"generating"}}');
const made = respond(200, {}, '{"data":{"status":"ready"}}');
/** The second half, broken off again: with a validator, a weak one, and none. */
const broken = (etag?: string) => rest({ end: 3_000, ending: 'breaks', etag });
const [strong, weak, none] = [broken('"a"'), broken('W/"a"'), broken()];

it.each<[what: string, responses: Respond[], requests: string]>([
  ['before the headers', [lost, begun(4_000, 'ends')], 'order order'],
  ['before its first byte', [begun(0), rest()], 'order 0-'],
  ['before its first byte, and then comes without ranges,', [begun(0), whole], 'order 0-'],
  ['after its first byte', [begun(1), rest()], 'order 0-'],
  ['in its middle', [half, rest()], 'order 976-'],
  ['after its last byte', [begun(4_000), rest()], 'order 2976-'],
  ['without a break that shows', [begun(2_000, 'stalls'), rest()], 'order 976-'],
  ['twice', [half, none, rest()], 'order 976- 1976-'],
  ['twice, with a validator', [half, strong, rest({ etag: '"a"' })], 'order 976- 3000-"a"'],
  ['twice, with weak validators', [half, weak, rest({ etag: 'W/"b"' })], 'order 976- 1976-'],
  ['again without showing it', [half, rest({ end: 3_000, ending: 'stalls' }), rest()], 'order 976- 1976-'],
  ['and whose rest is short', [half, rest({ end: 3_000 }), rest()], 'order 976- 1976-'],
  ['and whose rest has no total', [half, rest({ end: 3_000, total: '*' }), rest()], 'order 976- 1976-'],
  [
    'and whose rest is late',
    [half, conflict, lost, silent, being, made, rest()],
    'order 976- record record record record 976-',
  ],
  [
    'and whose rest is late, of an upstream without records',
    [half, conflict, unknown, rest()],
    'order 976- record 976-',
  ],
  ['with the refresh of its session', [half, unrefreshed, rest()], 'order 976- 976-'],
  ['for want of memory', [full, silent, conflict, being, made, rest()], 'order 0- 0- record record 0-'],
  ['for want of memory, and then comes without ranges,', [full, whole], 'order 0-'],
])('a track whose connection breaks %s is whole, under one key', async (_, responses, requests) => {
  const { client, sent } = stubGateway(responses);
  const { audio, states, ...generation } = await fastForward(() => receive(client));
  expect(audio).toEqual(TRACK);
  expect(generation).toEqual({ creationId: 'c-7', generationId: null, contentType: 'audio/mpeg' });
  expect(states).toContain('recovering');
  expect(states.at(-1)).toBe('complete');
  const names = sent.map(({ call, headers, init }) => {
    if (call === 'POST /api/music/generate') return 'order';
    expect(init.cache).toBe('no-store');
    if (call === RECORD) return 'record';
    expect(call).toBe(CONTENT);
    return `${headers.get('range')?.replace('bytes=', '')}${headers.get('if-range') ?? ''}`;
  });
  expect(names.join(' ')).toBe(requests);
  const keys = sent.map(({ headers }) => headers.get('idempotency-key')).filter(Boolean);
  expect(new Set(keys).size).toBe(1);
});

it('an upstream that has refused audio that was being made is asked for the record first the next time', async () => {
  const { client, sent } = stubGateway([half, conflict, made, rest(), half, being, made, rest()]);
  for (const _ of [1, 2]) expect((await fastForward(() => receive(client))).audio).toEqual(TRACK);
  const calls = sent.map(({ call }) => call).filter((call) => call.startsWith('GET'));
  expect(calls).toEqual([CONTENT, RECORD, CONTENT, RECORD, RECORD, CONTENT]);
});

it('a fault of the page in its isBeingMade is shown at once, not taken for one of the network', async () => {
  const fault = new TypeError('no status');
  const isBeingMade = () => {
    throw fault;
  };
  const { client, sent } = stubGateway([half, conflict, made], { isBeingMade });
  expect(await rejection(fastForward(() => receive(client)))).toBe(fault);
  expect(sent.length).toBe(3);
});

it.each<[what: string, responses: Respond[]]>([
  ['of another length', [half, strong, rest({ etag: '"a"', total: 4_001 })]],
  ['from another position', [half, rest({ first: 7 })]],
  ['of more bytes than its length', [half, rest({ total: 3_000 })]],
  ['whole instead of its rest', [half, whole]],
  ['without the range that was asked for', [half, respond(416)]],
  ['of other music', [half, rest({ of: TRACK.map((byte) => byte ^ 1) })]],
  ['from another position, for want of memory,', [full, rest({ first: 7 })]],
  ['with another validator', [half, strong, rest({ etag: '"b"' })]],
  ['with a weak validator', [half, strong, rest({ etag: 'W/"a"' })]],
  ['without a validator', [half, strong, rest()]],
])('the audio after a break %s ends the generation instead of being appended', async (_, responses) => {
  const error = await rejection(fastForward(() => receive(stubGateway(responses).client, KEY)));
  expect(error).toMatchObject({ name: 'RecoveryError', code: 'changed', creationId: 'c-7', ...KEY });
});

it.each<[what: string, responses: Respond[], code: string, creationId: string | null, status: number]>([
  ['lasts a minute', [half, lost], 'gave_up', 'c-7', 0],
  ['lasts a minute before the headers', [lost], 'gave_up', null, 0],
  ['lasts a minute without a byte', [half, rest({ end: 0, ending: 'stalls' })], 'gave_up', 'c-7', 0],
  ['has no id of the creation', [() => new Response(audio(TRACK, 'breaks'))], 'gave_up', null, 0],
  ['gets a refusal of the rest', [half, respond(404)], 'refused', 'c-7', 404],
  ['gets a refusal of the repeated order', [lost, respond(402)], 'refused', null, 402],
  ['finds that the session has ended', [half, respond(401)], 'refused', 'c-7', 401],
])('a recovery that %s fails with the key of its order', async (_, responses, code, creationId, status) => {
  const { client, sent } = stubGateway(responses);
  const options = { ...KEY, giveUpAfterMs: 60_000 };
  const error = await rejection(fastForward(() => receive(client, options)));
  expect(error).toMatchObject({ name: 'RecoveryError', code, creationId, ...KEY, cause: { status } });
  const span = (sent.at(-1)?.at ?? 0) - (sent[0]?.at ?? 0);
  if (code === 'gave_up' && sent.length > 1) expect(span).toBeWithin(30_000, 85_000);
  else expect(sent.length).toBeLessThanOrEqual(2);
});
