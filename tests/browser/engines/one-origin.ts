/** A page on the gateway's own origin, whose reads and media elements send no `Origin`: it has a session and sound. */

import { expect } from 'bun:test';
import { signInThroughForm } from '../../../src/demo/tour/sign-in-through-form.ts';
import { eventually } from '../../support/eventually.ts';
import { ORDER, SANDBOX_CLIENT } from '../../support/sandbox-account.ts';
import { startSandboxGateway } from '../sandbox-gateway.ts';
import type { Listener } from './listening.ts';

interface Visitor extends Listener {
  open(address: string): Promise<unknown>;
  /** Presses the button with this name, because not every engine plays without that. */
  presses(name: string): Promise<void>;
}

const PAGE = `<!doctype html><link rel="icon" href="data:,"><audio></audio>
  <button onclick="document.querySelector('audio').play()">Play</button>`;

export async function playsOnOneOrigin(visitor: Visitor): Promise<void> {
  let gatewayUrl = '';
  await using proxy = Bun.serve({
    port: 0,
    hostname: 'localhost',
    async fetch(request) {
      const { pathname } = new URL(request.url);
      const page = new Response(PAGE, { headers: { 'content-type': 'text/html' } });
      const { method, headers } = request;
      const body = method === 'POST' ? await request.text() : null;
      // With the browser's own Host.
      return pathname.startsWith('/api/') ? fetch(gatewayUrl + pathname, { method, headers, body }) : page;
    },
  });
  const { origin } = proxy.url;
  await using gateway = await startSandboxGateway(origin, { SAME_ORIGIN: 'true' });
  gatewayUrl = gateway.url;
  const { sandbox, redirectUri } = gateway;
  const { identityProviderUrl } = sandbox;
  const grant = await signInThroughForm({ ...SANDBOX_CLIENT, identityProviderUrl, redirectUri, name: 'Ada' });
  await visitor.open(origin);
  const session = await visitor.call(
    signInAndGenerate,
    { code: grant.code, code_verifier: grant.codeVerifier },
    ORDER,
  );
  expect(session).toMatchObject({ data: { name: 'Ada' } });
  await visitor.presses('Play');
  const time = () => visitor.call(() => document.querySelector('audio')?.currentTime);
  await eventually(time, 'the sound of the track');
}

/** Runs in the page. */
async function signInAndGenerate(grant: object, order: object): Promise<unknown> {
  const post = (path: string, body: object) =>
    fetch(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  await post('/api/auth/idp', grant);
  const generation = await post('/api/music/generate', order);
  await generation.arrayBuffer();
  const id = generation.headers.get('x-music-creation-id');
  const source = `/api/upstream/v1/music/creations/${id}/content`;
  document.querySelector('audio')?.setAttribute('src', source);
  return (await fetch('/api/auth/session')).json();
}
