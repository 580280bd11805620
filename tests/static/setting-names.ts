/** The names of all settings, as the gateway prints them when one is missing. */

import { parseSettings } from '../../src/gateway/settings/settings.ts';

/** Begins the last problem with settings of which a required one is missing. */
export const NAMES_PREFIX = 'the names of all settings are ';

export function settingNames(): string[] {
  const outcome = parseSettings({});
  const [last = ''] = outcome.ok ? [] : outcome.problems.slice(-1);
  if (!last.startsWith(NAMES_PREFIX)) throw new Error('the names of the settings are not printed');
  return last.slice(NAMES_PREFIX.length).split(', ');
}
