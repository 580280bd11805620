import { describe, expect, it } from 'bun:test';
import { messages } from '../../../src/gateway/http/messages.ts';
import { envelopeMessage, ORIGIN, SIGNED_IN, startWorld } from '../../support/world.ts';

const MODELS = '/api/music/models';
const HOST = new URL(ORIGIN).host;
const OWN = { 'sec-fetch-site': 'same-origin', host: HOST };
const ON = { SAME_ORIGIN: 'true' };
const BEHIND_PROXY = { ...ON, TRUSTED_PROXIES: '127.0.0.1' };
const evil = { host: 'evil.test' };
const forwarded = (host: string) => ({ 'x-forwarded-host': host });

type Row = readonly [what: string, settings: Record<string, string>, headers: Record<string, string>];

async function statusOf(
  settings: Record<string, string>,
  headers: Record<string, string>,
  origin: string | null,
) {
  await using world = startWorld(settings);
  world.upstream.on('GET /v1/models', () => Response.json([]));
  const response = await world.request(MODELS, { origin, headers, cookie: SIGNED_IN });
  expect(response.headers.get('access-control-allow-origin')).toBeNull();
  expect(world.upstream.calls).toEqual(response.status === 200 ? ['GET /v1/models'] : []);
  return response.status;
}

describe('a request without Origin, from a page on the gateway’s own origin', () => {
  it.each<Row>([
    ['when the browser says so and the host is that of an allowed origin', ON, OWN],
    ['when a trusted proxy names that host', BEHIND_PROXY, { ...OWN, ...evil, ...forwarded(HOST) }],
    ['when a trusted proxy names none', BEHIND_PROXY, OWN],
  ])('is allowed %s', async (_, settings, headers) => {
    expect(await statusOf(settings, headers, null)).toBe(200);
  });

  it.each<Row>([
    ['without the setting', {}, OWN],
    ...['same-site', 'cross-site', 'none', '', 'same-origin, same-origin', 'Same-Origin'].map(
      (site): Row => [`as ${site || 'an unknown'} request`, ON, { ...OWN, 'sec-fetch-site': site }],
    ),
    ['of another host, whose name leads here', ON, { ...OWN, ...evil }],
    ['of another port', ON, { ...OWN, host: `${HOST}:8080` }],
    ['whose host a stranger names', ON, { ...OWN, ...evil, ...forwarded(HOST) }],
    ['for which a trusted proxy names another host', BEHIND_PROXY, { ...OWN, ...forwarded('evil.test') }],
  ])('is refused %s', async (_, settings, headers) => {
    expect(await statusOf(settings, headers, null)).toBe(403);
  });

  it('is refused with another Origin, whatever else it says', async () => {
    expect(await statusOf(ON, OWN, 'http://evil.test')).toBe(403);
  });
});

it.each([
  ['tells what to send', {}, messages.en.originMissing],
  ['says no more in production', { NODE_ENV: 'production' }, messages.en.originNotAllowed],
])('a refusal of a request without Origin %s', async (_, settings, message) => {
  await using world = startWorld(settings);
  expect(await envelopeMessage(await world.request(MODELS, { origin: null }), 403)).toBe(message);
});
