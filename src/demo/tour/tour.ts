/** `bun run tour` uses a running demo as a browser would, and exits with 1 when a step is wrong. */

import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { createGatewayClient, type GatewayClient } from '../../client/gateway-client.ts';
import { GatewayRequestError } from '../../client/gateway-request.ts';
import type { GenerationProgress } from '../../client/generation.ts';
import { DEMO_CLIENT_ID, demoAddresses, demoCommand } from '../demo-addresses.ts';
import { composeTrack } from '../sandbox/audio/composition.ts';
import { renderWav, wavSize } from '../sandbox/audio/wav.ts';
import { CookieJar } from './cookie-jar.ts';
import { navigate, submitForm } from './sign-in-through-form.ts';
import { check, progress, step } from './tour-steps.ts';
import { describeWav } from './wav-description.ts';

const { gatewayUrl, cookiePrefix, identityProviderUrl, studioOrigin, redirectUri } = demoAddresses();
const TRACK_FILE = process.env['TOUR_TRACK'] || 'tour-track.wav';
const LENGTH_MS = 30_000;
const RECORDINGS = '/v1/music/references';
const UPLOAD_MS = 60_000;

const Models = Type.Array(Type.Object({ id: Type.String(), modalities: Type.Array(Type.String()) }));

const Recording = Type.Object({
  id: Type.String(),
  key: Type.Union([Type.Null(), Type.Object({ tonic: Type.String(), mode: Type.String() })]),
  tempo_bpm: Type.Union([Type.Null(), Type.Number()]),
});
const Recordings = Type.Array(Recording);

const jar = new CookieJar();
const client = createClient(jar);
const stranger = createClient(new CookieJar());

/** A client that adds what a browser would: the Studio's origin, the cookies, and the storage. */
function createClient(cookies: CookieJar): GatewayClient {
  const remembered = new Map<string, string>();
  return createGatewayClient({
    baseUrl: gatewayUrl,
    fetch(url, init) {
      const headers = new Headers(init.headers);
      headers.set('origin', studioOrigin);
      return cookies.fetch(new URL(url), { ...init, headers });
    },
    storage: {
      getItem: (key) => remembered.get(key) ?? null,
      setItem: (key, value) => void remembered.set(key, value),
      removeItem: (key) => void remembered.delete(key),
    },
  });
}

/** The status of the gateway's response; every success counts as 200. */
async function refusal(request: Promise<unknown>): Promise<number> {
  try {
    await request;
  } catch (error) {
    if (error instanceof GatewayRequestError) return error.status;
    throw error;
  }
  return 200;
}

async function tour(): Promise<void> {
  await step('health', async () => {
    const response = await fetch(`${gatewayUrl}/api/health`);
    check(response.ok, `status ${response.status}`);
    return { outcome: `200 ${await response.text()}`, result: undefined };
  });

  await step('session check before sign-in', async () => {
    const { authenticated } = await client.session();
    check(!authenticated, 'somebody is signed in');
    return { outcome: 'nobody is signed in', result: undefined };
  });

  const redirect = await step('login form at the identity provider', async () => {
    const address = await client.beginSignIn({
      issuer: identityProviderUrl,
      authorizationEndpoint: `${identityProviderUrl}/oauth/authorize`,
      clientId: DEMO_CLIENT_ID,
      redirectUri,
    });
    const end = await submitForm(jar, await navigate(jar, new URL(address)), {
      name: 'Tour',
      password: 'any',
    });
    check(end.at === 'client', `the identity provider shows a page instead of redirecting`);
    return { outcome: `redirected to ${redirectUri} with a code`, result: end.redirect };
  });

  await step('sign-in', async () => {
    check(await client.completeSignIn(redirect.href), 'the redirect has no sign-in response');
    check(jar.names(new URL(gatewayUrl)).length === 2, 'the session cookies are not both set');
    return { outcome: 'two HttpOnly cookies', result: undefined };
  });

  await step('session check', async () => {
    const session = await client.session();
    check(session.authenticated, 'nobody is signed in');
    return { outcome: JSON.stringify(session.profile), result: undefined };
  });

  const model = await step('models', async () => {
    const models = Value.Parse(Models, await client.models());
    const music = models.filter(({ modalities }) => modalities.includes('music'));
    check(music[0] !== undefined, 'there is no model for music');
    return { outcome: `${models.length} models, ${music.length} for music`, result: music[0].id };
  });

  const recording = await step('upload a recording, from which the next track starts', upload);
  const creationId = await step('generate', () => generate(model));
  await step('delete the recording', async () => {
    await client.upstream(`${RECORDINGS}/${recording}`, { method: 'DELETE' });
    const left = Value.Parse(Recordings, await client.upstreamData(RECORDINGS));
    check(
      left.every(({ id }) => id !== recording),
      'it is still there',
    );
    return { outcome: 'it is not listed any more', result: undefined };
  });
  await playAndShare(creationId);

  await step('continue after the access token has expired', async () => {
    const before = jar.value(new URL(gatewayUrl), `${cookiePrefix}svc_music_refresh`);
    await untilExpired(`${cookiePrefix}svc_music_access`);
    const { authenticated } = await client.session();
    check(authenticated, 'nobody is signed in');
    const after = jar.value(new URL(gatewayUrl), `${cookiePrefix}svc_music_refresh`);
    check(after !== undefined && after !== before, 'there is no new pair of cookies');
    return { outcome: 'still signed in, with a new pair of cookies', result: undefined };
  });

  await step('sign out', async () => {
    await client.signOut();
    const status = await refusal(client.models());
    check(status === 401, `models responds with ${status}`);
    return { outcome: 'models now responds with 401', result: undefined };
  });
}

/** The gateway streams a file of this size. */
async function upload() {
  const music = composeTrack({ prompt: 'a tune that is brought along', model: '', lengthMs: UPLOAD_MS });
  const file = renderWav(music, 0, wavSize(UPLOAD_MS));
  const body = new FormData();
  body.set('file', new Blob([file]), 'tune.wav');
  const response = await client.upstream(RECORDINGS, { method: 'POST', body });
  const { id, key, tempo_bpm: tempo } = Value.Parse(Recording, Object(await response.json()).data);
  check(key !== null && tempo !== null, 'neither key nor tempo was heard');
  const outcome = `${(file.length / 1e6).toFixed(1)} MB, in ${key.tonic} ${key.mode}, ${tempo} beats a minute`;
  return { outcome, result: id };
}

async function generate(model: string) {
  const order = { model, prompt: 'a calm evening by the lake', music_length_ms: LENGTH_MS };
  let last: GenerationProgress | undefined;
  const { creationId, body } = await client.generate(order, {
    onProgress(seen) {
      last = seen;
      progress(`${(seen.bytes / 1e6).toFixed(2)} MB`);
    },
  });
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  const { firstByteMs = 0, elapsedMs: totalMs = 0, bytes: size = 0 } = last ?? {};
  const track = Buffer.concat(chunks);
  await Bun.write(TRACK_FILE, track);
  const { seconds, loudness } = describeWav(track);
  check(seconds === LENGTH_MS / 1000, `${seconds} s instead of ${LENGTH_MS / 1000} s`);
  check(loudness > 0.01, `silence (RMS ${loudness.toFixed(4)})`);
  check(firstByteMs < totalMs / 2, `the first byte came only after ${firstByteMs.toFixed(0)} ms`);
  const outcome = `first byte after ${firstByteMs.toFixed(0)} ms, ${size} bytes, ${seconds} s of music in ${TRACK_FILE}`;
  return { outcome, result: creationId ?? '' };
}

async function playAndShare(creationId: string): Promise<void> {
  const shared = `/v1/music/public/${creationId}/content` as const;

  await step('play from the middle', async () => {
    const saved = await Bun.file(TRACK_FILE).bytes();
    const from = Math.floor(saved.length / 2);
    const response = await client.upstream(`/v1/music/creations/${creationId}/content`, {
      headers: { range: `bytes=${from}-${from + 65_535}` },
    });
    const bytes = await response.bytes();
    check(response.status === 206, `status ${response.status}`);
    check(Buffer.from(saved.subarray(from, from + 65_536)).equals(bytes), 'the bytes are not the same');
    return { outcome: `206 ${response.headers.get('content-range')}`, result: undefined };
  });

  await step('a stranger asks for it while it is private', async () => {
    const status = await refusal(stranger.upstream(shared));
    check(status === 404, `status ${status}`);
    return { outcome: String(status), result: undefined };
  });

  await step('publish', async () => {
    await client.setVisibility(creationId, true);
    return { outcome: 'is_public is true', result: undefined };
  });

  await step('a stranger plays it', async () => {
    const response = await stranger.upstream(shared);
    const bytes = await response.bytes();
    check(Buffer.from(await Bun.file(TRACK_FILE).bytes()).equals(bytes), 'the bytes are not the same');
    return { outcome: `200 ${bytes.length} bytes`, result: undefined };
  });
}

/** Waits until the cookie expires, because a browser drops it then. */
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
