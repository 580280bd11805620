/**
 * Prints whether the gateway would start with these settings, and with `--connect` also whether the servers that it
 * needs respond as they should. Exits with 1 after any error.
 */

import { loadSettings, type Settings } from '../gateway/settings/settings.ts';
import { checkClient } from './client-check.ts';
import { clockFindings } from './clock-check.ts';
import type { Finding } from './finding.ts';
import { probe } from './http-probe.ts';
import { checkPorts } from './port-check.ts';
import { isSwapped, metadataFindings, probeMetadata } from './provider-metadata.ts';
import { checkRedis } from './redis-check.ts';
import { valueFindings } from './slips.ts';
import { socketFindings } from './socket-check.ts';
import { UPSTREAM_PROBE_PATH, upstreamFinding } from './upstream-check.ts';

const SWAPPED =
  'UPSTREAM_URL and IDP_URL are swapped: UPSTREAM_URL publishes the metadata of an identity provider, and IDP_URL none';

async function findings(options: readonly string[]): Promise<readonly Finding[]> {
  const unknown = options.find((option) => option !== '--connect');
  if (unknown !== undefined)
    return [{ level: 'error', text: `${unknown} is not an option; the only one is --connect` }];
  const outcome = await loadSettings(process.env);
  const warnings = outcome.warnings.map((text): Finding => ({ level: 'warning', text }));
  if (!outcome.ok)
    return [...warnings, ...outcome.problems.map((text): Finding => ({ level: 'error', text }))];
  const { settings } = outcome;
  return [
    ...warnings,
    ...valueFindings(settings, process.env),
    ...socketFindings(settings.memoryLimitBytes),
    { level: 'ok', text: 'the gateway would start with these settings' },
    ...(options.length ? await connectionFindings(settings) : []),
  ];
}

async function connectionFindings(settings: Settings): Promise<Finding[]> {
  const { upstreamUrl, identityProvider, redisUrl } = settings;
  const [upstream, ofUpstream, metadata, client, redis, ports] = await Promise.all([
    probe('models', upstreamUrl + UPSTREAM_PROBE_PATH),
    probeMetadata(upstreamUrl),
    probeMetadata(identityProvider.issuer),
    checkClient(identityProvider),
    checkRedis(redisUrl),
    checkPorts(settings),
  ]);
  const servers: Finding[] = isSwapped(metadata, ofUpstream)
    ? [{ level: 'error', text: SWAPPED }]
    : [upstreamFinding(upstreamUrl, upstream), client, ...metadataFindings(identityProvider, metadata)];
  return [...servers, ...redis, ...clockFindings({ UPSTREAM_URL: [upstream], IDP_URL: metadata }), ...ports];
}

const found = await findings(process.argv.slice(2));
for (const { level, text } of found) console.log(`${level}: ${text}`);
process.exit(found.some(({ level }) => level === 'error') ? 1 : 0);
