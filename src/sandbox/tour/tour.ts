/** `bun run tour`: walks a running demo as a person with a browser would, and exits with 1 when a step is wrong. */

import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { DEMO_CLIENT_ID, demoAddresses, demoCommand } from '../demo-addresses.ts';
import { CookieJar } from './cookie-jar.ts';
import { requestAuthorization, submitForm } from './sign-in-through-form.ts';
import { check, progress, step } from './tour-steps.ts';
import { describeWav } from './wav-description.ts';

const { gatewayUrl, identityProviderUrl, studioOrigin, redirectUri } = demoAddresses();
const TRACK_FILE = process.env['TOUR_TRACK'] || 'tour-track.wav';
const LENGTH_MS = 30_000;

const Models = Type.Object({
  data: Type.Array(Type.Object({ id: Type.String(), modalities: Type.Array(Type.String()) })),
});

const jar = new CookieJar();

/** A request as a browser on the studio's origin sends it; without cookies for a stranger. */
function gateway(path: string, init: RequestInit = {}, cookies = jar): Promise<Response> {
  const headers = { origin: studioOrigin, ...Object.fromEntries(new Headers(init.headers)) };
  return cookies.fetch(new URL(path, gatewayUrl), { ...init, headers });
}

function postJson(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return gateway(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
}

async function tour(): Promise<void> {
  await step('health', async () => {
    const response = await gateway('/api/health');
    check(response.ok, `status ${response.status}`);
    return { outcome: `200 ${await response.text()}`, result: undefined };
  });

  await step('session check before sign-in', async () => {
    const text = await (await gateway('/api/auth/session')).text();
    check(text === '{"authenticated":false}', text);
    return { outcome: text, result: undefined };
  });

  const grant = await step('login form at the identity provider', async () => {
    const { landing, codeVerifier, state } = await requestAuthorization({
      identityProviderUrl,
      clientId: DEMO_CLIENT_ID,
      redirectUri,
      jar,
    });
    const end = await submitForm(jar, landing, { name: 'Tour', password: 'any' });
    check(end.at === 'client', `a page instead of the redirect`);
    check(end.redirect.searchParams.get('state') === state, 'another state than was sent');
    const code = end.redirect.searchParams.get('code') ?? '';
    return {
      outcome: `redirected to ${redirectUri} with a code`,
      result: { code, code_verifier: codeVerifier },
    };
  });

  await step('sign-in', async () => {
    const response = await postJson('/api/auth/idp', grant);
    const text = await response.text();
    check(response.status === 200 && text === '{"ok":true}', `${response.status} ${text}`);
    check(jar.names(new URL(gatewayUrl)).length === 2, 'not both session cookies are set');
    return { outcome: `200 ${text}, two HttpOnly cookies`, result: undefined };
  });

  await step('session check', async () => {
    const response = await gateway('/api/auth/session');
    check(response.status === 200, `status ${response.status}`);
    return { outcome: `200 ${await response.text()}`, result: undefined };
  });

  const model = await step('models', async () => {
    const response = await gateway('/api/music/models');
    const { data } = Value.Parse(Models, await response.json());
    const music = data.filter(({ modalities }) => modalities.includes('music'));
    check(music[0] !== undefined, 'no model for music');
    return { outcome: `200 ${data.length} models, ${music.length} for music`, result: music[0].id };
  });

  const creationId = await step('generate', () => generate(model));
  await enjoy(creationId);

  await step('go on after the access token has expired', async () => {
    const before = jar.value(new URL(gatewayUrl), 'svc_music_refresh');
    await untilExpired('svc_music_access');
    const response = await gateway('/api/auth/session');
    check(response.status === 200, `status ${response.status}`);
    const after = jar.value(new URL(gatewayUrl), 'svc_music_refresh');
    check(after !== undefined && after !== before, 'no new pair of cookies');
    return { outcome: '200 and a new pair of cookies', result: undefined };
  });

  await step('sign out', async () => {
    const text = await (await postJson('/api/auth/logout', {})).text();
    check(text === '{"ok":true}', text);
    const models = await gateway('/api/music/models');
    check(models.status === 401, `models answer ${models.status}`);
    return { outcome: `200 ${text}, then 401 for models`, result: undefined };
  });
}

async function generate(model: string) {
  const begun = performance.now();
  const response = await postJson(
    '/api/music/generate',
    { model, prompt: 'a calm evening by the lake', music_length_ms: LENGTH_MS },
    { 'idempotency-key': crypto.randomUUID() },
  );
  check(response.status === 200, `${response.status} ${response.ok ? '' : await response.text()}`);
  const chunks: Uint8Array[] = [];
  let firstByteMs = 0;
  let size = 0;
  for await (const chunk of response.body ?? []) {
    firstByteMs ||= performance.now() - begun;
    size += chunk.byteLength;
    chunks.push(chunk);
    progress(`${(size / 1e6).toFixed(2)} MB`);
  }
  const totalMs = performance.now() - begun;
  const track = Buffer.concat(chunks);
  await Bun.write(TRACK_FILE, track);
  const { seconds, loudness } = describeWav(track);
  check(seconds === LENGTH_MS / 1000, `${seconds} s instead of ${LENGTH_MS / 1000} s`);
  check(loudness > 0.01, `silence (RMS ${loudness.toFixed(4)})`);
  check(firstByteMs < totalMs / 2, `the first byte came only after ${firstByteMs.toFixed(0)} ms`);
  const outcome = `200 first byte after ${firstByteMs.toFixed(0)} ms, ${size} bytes, ${seconds} s of music in ${TRACK_FILE}`;
  return { outcome, result: response.headers.get('x-music-creation-id') ?? '' };
}

async function enjoy(creationId: string): Promise<void> {
  const creation = `/api/upstream/v1/music/creations/${creationId}`;
  const shared = `/api/upstream/v1/music/public/${creationId}/content`;

  await step('play from the middle', async () => {
    const saved = await Bun.file(TRACK_FILE).bytes();
    const from = Math.floor(saved.length / 2);
    const response = await gateway(`${creation}/content`, {
      headers: { range: `bytes=${from}-${from + 65_535}` },
    });
    const bytes = await response.bytes();
    check(response.status === 206, `status ${response.status}`);
    check(Buffer.from(saved.subarray(from, from + 65_536)).equals(bytes), 'other bytes than were generated');
    return { outcome: `206 ${response.headers.get('content-range')}`, result: undefined };
  });

  await step('a stranger asks for it while it is private', async () => {
    const { status } = await gateway(shared, {}, new CookieJar());
    check(status === 404, `status ${status}`);
    return { outcome: String(status), result: undefined };
  });

  await step('publish', async () => {
    const response = await gateway(creation, {
      method: 'PATCH',
      headers: { 'content-type': 'application/json' },
      body: '{"is_public":true}',
    });
    check(response.status === 200, `status ${response.status}`);
    await response.body?.cancel();
    return { outcome: '200 is_public is true', result: undefined };
  });

  await step('a stranger plays it', async () => {
    const response = await gateway(shared, {}, new CookieJar());
    const bytes = await response.bytes();
    check(response.status === 200, `status ${response.status}`);
    check(Buffer.from(await Bun.file(TRACK_FILE).bytes()).equals(bytes), 'other bytes than were generated');
    return { outcome: `200 ${bytes.length} bytes`, result: undefined };
  });
}

/** A browser drops the access cookie when the token's life is over; this waits for it as a person would. */
async function untilExpired(name: string): Promise<void> {
  for (;;) {
    const seconds = jar.secondsLeft(new URL(gatewayUrl), name);
    if (seconds <= 0) return;
    progress(`${Math.ceil(seconds)} s until the access token expires`);
    await Bun.sleep(Math.min(1000, seconds * 1000));
  }
}

try {
  console.log(`A tour of ${gatewayUrl}\n`);
  await tour();
  console.log('\nAll steps were right.');
} catch (error) {
  const refused = error instanceof Error && 'code' in error && error.code === 'ECONNREFUSED';
  console.error(
    refused ? `\nIs the demo running? Start it with: ${demoCommand('demo')}` : '\nThe tour ends here.',
  );
  process.exit(1);
}
