/** Checks whether the upstream responds. */

import type { Finding } from './finding.ts';
import type { Probed } from './http-probe.ts';

export const UPSTREAM_PROBE_PATH = '/v1/models';

/** @param probed the response to a GET of {@link UPSTREAM_PROBE_PATH} without a token */
export function upstreamFinding(upstreamUrl: string, probed: Probed): Finding {
  const upstream = `UPSTREAM_URL: ${upstreamUrl}`;
  if ('problem' in probed) return { level: 'error', text: `${upstream} ${probed.problem}` };
  const { status } = probed.response;
  const found = `${upstream} responds with ${status} to GET ${UPSTREAM_PROBE_PATH} without a token`;
  if (status >= 500) return { level: 'error', text: `${found}: see its log` };
  if (status >= 300 && status < 400) {
    return {
      level: 'warning',
      text: `${found}: the gateway follows no redirect; set the address to which it leads`,
    };
  }
  if (status === 404) return { level: 'warning', text: `${found}: is the path of the address right?` };
  return { level: 'ok', text: found };
}
