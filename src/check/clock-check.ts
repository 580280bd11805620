/** Compares the clock of this machine with those of other servers. */

import type { Finding } from './finding.ts';
import type { Probed } from './http-probe.ts';

/** Client assertions and sealed cookies carry times, which a provider or another instance compares with its own. */
const MAX_DIFFERENCE_SECONDS = 30;

/** @param probed by the name of the setting, what its server has sent; without a response nothing is found. */
export function clockFindings(probed: Readonly<Record<string, readonly Probed[]>>): Finding[] {
  return Object.entries(probed).flatMap(([setting, responses]): Finding[] => {
    const seconds = responses.map(secondsAhead).find((each) => each !== undefined);
    if (seconds === undefined) return [];
    const found = `clock: this machine is ${Math.abs(seconds)} s ${seconds < 0 ? 'behind' : 'ahead of'} the server of ${setting}`;
    if (Math.abs(seconds) <= MAX_DIFFERENCE_SECONDS) return [{ level: 'ok', text: found }];
    return [{ level: 'error', text: `${found}: set it right, and keep it right with NTP` }];
  });
}

/** @see RFC 9110 section 6.6.1. A response with an Age (RFC 9111 section 5.1) comes from a cache, with an old time. */
function secondsAhead(probed: Probed): number | undefined {
  if ('problem' in probed || probed.response.headers.has('age')) return undefined;
  const time = Date.parse(probed.response.headers.get('date') ?? '');
  return Number.isNaN(time) ? undefined : Math.round((probed.receivedAt - time) / 1000);
}
