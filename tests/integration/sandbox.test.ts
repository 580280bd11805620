/** The sandbox as a whole: from the login form to a track, what it costs and where it shows. */

import { afterAll, beforeAll, describe, expect, it } from 'bun:test';
import { type Sandbox, startSandbox } from '../../src/demo/sandbox/sandbox.ts';
import { ORDER, openAccount, SANDBOX_CLIENT, startTestSandbox } from '../support/sandbox-account.ts';

let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await startTestSandbox({ now: () => Date.UTC(2026, 4, 6), startingBalance: 10 });
});
afterAll(() => sandbox.stop());

describe('upstream, GET /v1/me and /v1/models', () => {
  it('tell who signed in, and which models make music', async () => {
    const account = await openAccount(sandbox, 'Zoë');
    expect(await account.read('/v1/me')).toEqual({
      id: expect.any(String),
      name: 'Zoë',
      created_at: '2026-05-06T00:00:00.000Z',
    });
    expect(await account.read('/v1/models')).toMatchObject([
      { id: 'sandbox-speech-1', modalities: ['speech'] },
      { id: 'sandbox-music-2', modalities: ['music'] },
      { id: 'sandbox-music-1', modalities: ['music'] },
      { id: 'sandbox-image-1', modalities: ['image'] },
    ]);
  });
});

describe('upstream, POST /v1/music', () => {
  it('streams a WAV file with the headers of a download', async () => {
    const account = await openAccount(sandbox, 'download');
    const response = await account.generate(ORDER);

    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('audio/wav');
    expect(response.headers.get('content-disposition')).toBe(
      'attachment; filename="rain-on-a-tin-roof-slow-piano.wav"',
    );
    expect(response.headers.get('x-generation-id')).toMatch(/^[\da-f-]{36}$/);
    const audio = await response.bytes();
    expect(new TextDecoder().decode(audio.subarray(0, 4))).toBe('RIFF');

    const id = response.headers.get('x-music-creation-id');
    expect(await account.read('/v1/music/creations')).toMatchObject([
      { id, status: 'ready', prompt: ORDER.prompt, is_public: false, credits: 3, size_bytes: audio.length },
    ]);
    const content = await account.request(`/v1/music/creations/${id}/content`);
    expect(await content.bytes()).toEqual(audio);
  });

  it('shows in library, balance, activity and the monthly summary', async () => {
    const account = await openAccount(sandbox, 'billing');
    await (await account.generate(ORDER)).arrayBuffer();
    await (await account.generate({ ...ORDER, model: 'sandbox-music-2' })).arrayBuffer();

    expect(await account.credits()).toBe(10 - 3 - 6);
    expect(await account.read('/v1/music/creations')).toMatchObject([
      { model: 'sandbox-music-2' },
      { model: 'sandbox-music-1' },
    ]);
    expect(await account.read('/v1/activity')).toMatchObject([
      { type: 'generation', credits: 6 },
      { type: 'generation', credits: 3 },
      { type: 'sign_in', credits: 0 },
    ]);
    expect(await account.read('/v1/billing/summary?month=2026-05')).toEqual({
      month: '2026-05',
      generations: 2,
      music_length_ms: 6_000,
      credits_spent: 9,
    });
    expect(await account.read('/v1/billing/summary?month=2026-04')).toMatchObject({ generations: 0 });
    expect((await account.request('/v1/billing/summary?month=2026-13')).status).toBe(422);
  });

  it('costs nothing and leaves nothing when the balance is too low', async () => {
    const account = await openAccount(sandbox, 'poor');
    const response = await account.generate({ ...ORDER, music_length_ms: 10_001 });

    expect(response.status).toBe(402);
    expect(await response.json()).toEqual({ error: { message: 'This costs 11 credits; 10 are left' } });
    expect(await account.credits()).toBe(10);
    expect(await account.read('/v1/music/creations')).toEqual([]);
  });

  it.each([
    ['a model that makes no music', { ...ORDER, model: 'sandbox-speech-1' }],
    ['a model that does not exist', { ...ORDER, model: 'nothing' }],
    ['a further key', { ...ORDER, seed: 1 }],
    ['a missing key', { ...ORDER, is_public: undefined }],
    ['a length in words', { ...ORDER, music_length_ms: '3000' }],
    ['a length that is too short', { ...ORDER, music_length_ms: 2_999 }],
  ])('refuses %s', async (_what, body) => {
    const account = await openAccount(sandbox, 'mistaken');
    expect((await account.generate(body)).status).toBe(422);
    expect(await account.credits()).toBe(10);
  });
});

describe('startSandbox()', () => {
  it('rejects with EADDRINUSE for a taken port, and leaves nothing running', async () => {
    const { clientId, redirectUri } = SANDBOX_CLIENT;
    const free = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response() });
    const identityProviderPort = free.port ?? 0;
    await free.stop(true);
    const options = { clientId, redirectUris: [redirectUri], identityProviderPort };
    const upstreamPort = Number(new URL(sandbox.upstream.url).port);

    await expect(startSandbox({ ...options, upstreamPort })).rejects.toMatchObject({ code: 'EADDRINUSE' });

    const second = await startSandbox(options);
    expect(second.identityProviderUrl).toBe(`http://127.0.0.1:${identityProviderPort}`);
    await second.stop();
  });

  it('prints nothing, from the start over a sign-in to the end', async () => {
    const support = new URL('../support/sandbox-account.ts', import.meta.url).href;
    const script = `import { signIn, startTestSandbox } from ${JSON.stringify(support)};
      const sandbox = await startTestSandbox(); await signIn(sandbox, 'quiet'); await sandbox.stop();`;
    const child = Bun.spawn([process.execPath, '-e', script], { stdout: 'pipe', stderr: 'pipe' });
    expect(await child.stdout.text()).toBe('');
    expect(await child.stderr.text()).toBe('');
    expect(await child.exited).toBe(0);
  });
});
