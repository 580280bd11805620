import { describe, expect, it } from 'bun:test';
import { Type } from '@sinclair/typebox';
import { hear } from '../../../src/demo/sandbox/recording/hearing.ts';
import { ORDER, postJson, readJson, signIn, startTestSandbox } from '../../support/sandbox-account.ts';
import { A_MINOR, E_FLAT_MAJOR, recordTune } from '../recording.ts';

const SILENCE = recordTune({ notes: A_MINOR, bpm: 90 }).fill(0, 44);
/** The same at each run. */
const NOISE = Buffer.from(SILENCE);
for (let at = 44; at < NOISE.length; at += 4) NOISE.writeUInt32LE(Bun.hash.xxHash32(`noise ${at}`), at);
const ONE_NOTE = recordTune({ notes: [69], bpm: 1 });

describe('the sandbox hears in a recording', () => {
  it.each([
    ['a minor key', { notes: A_MINOR, bpm: 92 }, 9, 'minor'],
    ['a major key', { notes: E_FLAT_MAJOR, bpm: 120 }, 3, 'major'],
    ['a slow tune', { notes: A_MINOR, bpm: 70, seconds: 20 }, 9, 'minor'],
    ['a quick tune', { notes: E_FLAT_MAJOR, bpm: 150 }, 3, 'major'],
    ['one channel of 8 bits', { notes: A_MINOR, bpm: 92, channels: 1, bits: 8, rate: 22_050 }, 9, 'minor'],
    ['24 bits', { notes: A_MINOR, bpm: 92, bits: 24, rate: 48_000 }, 9, 'minor'],
    ['32 bits', { notes: A_MINOR, bpm: 92, bits: 32, rate: 8_000 }, 9, 'minor'],
    ['floating point', { notes: A_MINOR, bpm: 92, bits: -32 }, 9, 'minor'],
  ] as const)('%s', (_, tune, tonic, mode) => {
    const { key, tempo, seconds } = hear(recordTune(tune));
    expect(key).toEqual({ tonic, mode });
    expect(tempo).toBeWithin(tune.bpm - 1, tune.bpm + 2);
    expect(seconds).toBeCloseTo('seconds' in tune ? tune.seconds : 12);
  });

  it('no beat in a tone that stays', () => {
    expect(hear(ONE_NOTE)).toMatchObject({ key: { tonic: 9 }, tempo: undefined });
  });

  it.each([
    ['silence', SILENCE, 'Neither a key nor a steady beat'],
    ['noise', NOISE, 'Neither a key nor a steady beat'],
    ['a short one', recordTune({ notes: A_MINOR, bpm: 92, seconds: 2 }), '3 seconds'],
    ['an MP3', Buffer.from('ID3\x04\0\0\0\0\0\0\0\0'), 'This is an MP3 file'],
    ['an M4A', Buffer.from('\0\0\0\x20ftypM4A '), 'This is an MP4 or M4A file'],
    ['a FLAC', Buffer.from('fLaC\0\0\0\0\0\0\0\0'), 'This is a FLAC file'],
    ['a text', Buffer.from('Dear diary'), 'not a WAV file'],
    ['nothing', Buffer.alloc(0), 'not a WAV file'],
    ['a WAV file that ends early', ONE_NOTE.subarray(0, 30), 'not complete'],
    ['a compressed WAV file', Buffer.from(ONE_NOTE).fill(0x55, 20, 22), 'uncompressed'],
  ])('neither key nor tempo in %s, and says why', (_, file, reason) => {
    expect(() => hear(file)).toThrow(reason);
  });
});

const REFERENCE = Type.Object({
  data: Type.Object({ id: Type.String(), name: Type.String(), is_chosen: Type.Boolean() }),
});
const LIST = Type.Object({ data: Type.Array(Type.Union([REFERENCE.properties.data])) });

describe('the recordings of an account', () => {
  async function openAccount() {
    const sandbox = await startTestSandbox();
    const { url } = sandbox.upstream;
    const { access_token } = await signIn(sandbox, 'Ada');
    const headers = { authorization: `Bearer ${access_token}` };
    const call = (method: string, path: string, body?: ConstructorParameters<typeof Response>[0]) =>
      fetch(`${url}/v1/music/references${path}`, { method, headers, body: body ?? null });
    const add = (name: string, file: Uint8Array<ArrayBuffer>) => {
      const form = new FormData();
      form.set('file', new Blob([file]), name);
      return call('POST', '', form);
    };
    return {
      ...{ call, add },
      names: async () => {
        const { data } = await readJson(await call('GET', ''), LIST);
        return data.map(({ name, is_chosen }) => (is_chosen ? `*${name}` : name)).join(' ');
      },
      choose: (id: string, isChosen: boolean) =>
        call('PATCH', `/${id}`, JSON.stringify({ is_chosen: isChosen })),
      generate: async () => {
        const order = { ...ORDER, music_length_ms: 12_000, prompt: 'a march' };
        return Buffer.from(await (await postJson(`${url}/v1/music`, order, headers)).bytes());
      },
      otherAccount: async () => {
        const { access_token } = await signIn(sandbox, 'Grace');
        headers.authorization = `Bearer ${access_token}`;
      },
      [Symbol.asyncDispose]: () => sandbox.stop(),
    };
  }

  it('give the next track key and tempo, if one is chosen, and are listed and deleted by it alone', async () => {
    await using account = await openAccount();
    const { add, names, choose, call, generate } = account;
    const free = await generate();
    const added = await readJson(await add('a.wav', recordTune({ notes: A_MINOR, bpm: 144 })), REFERENCE);
    expect(added.data).toMatchObject({
      ...{ name: 'a.wav', length_ms: 12_000, is_chosen: true },
      ...{ key: { tonic: 'A', mode: 'minor' }, tempo_bpm: 144 },
    });
    const led = await generate();
    expect(hear(led).tempo).toBeWithin(143, 146);
    expect(hear(free).tempo).not.toBeWithin(143, 146);
    const major = await readJson(await add('b.wav', recordTune({ notes: E_FLAT_MAJOR, bpm: 96 })), REFERENCE);
    expect(await names()).toBe('*b.wav a.wav');
    expect(hear(await generate())).toMatchObject({ key: { tonic: 3, mode: 'major' }, tempo: 96 });
    expect((await choose(added.data.id, true)).status).toBe(200);
    expect(await names()).toBe('b.wav *a.wav');
    expect((await generate()).equals(led)).toBe(true);
    await choose(added.data.id, false);
    expect([await names(), (await generate()).equals(free)]).toEqual(['b.wav a.wav', true]);
    expect((await call('DELETE', `/${major.data.id}`)).status).toBe(204);
    expect(await names()).toBe('a.wav');
    await account.otherAccount();
    expect([await names(), (await choose(added.data.id, true)).status]).toEqual(['', 404]);
    expect((await call('DELETE', `/${added.data.id}`)).status).toBe(404);
  });

  it('are eight at most, and what is none is refused in words', async () => {
    await using account = await openAccount();
    const tune = recordTune({ notes: A_MINOR, bpm: 92, seconds: 4, rate: 8_000, channels: 1 });
    for (let number = 0; number < 9; number++) await account.add(`${number}`, tune);
    expect(await account.names()).toBe('*8 7 6 5 4 3 2 1');
    const statuses = [
      await account.add('x', Buffer.from('ID3\x04')),
      await account.call('POST', '', 'no form'),
      await account.call('POST', '', new Uint8Array(64_000_001)),
    ].map(async (response) => [response.status, Object(await response.json()).error.message]);
    expect(await Promise.all(statuses)).toEqual([
      [422, 'This is an MP3 file. Only WAV files can be heard here.'],
      [400, 'A form with a file is required'],
      [413, 'A recording may have 64 MB at most.'],
    ]);
  });
});
