/** The coordination of refreshes as a gateway puts it together, without the gateway. */

import { Admission } from '../../src/http/admission/admission.ts';
import type { Settings } from '../../src/settings.ts';
import type { ReplayStore } from '../../src/upstream/replay-store.ts';
import { SessionEndpoints } from '../../src/upstream/session-endpoints.ts';
import { SharedRefresh } from '../../src/upstream/shared-refresh.ts';

export function sharedRefreshOver(settings: Settings, store: ReplayStore): SharedRefresh {
  return new SharedRefresh(settings, store, new SessionEndpoints(settings, new Admission(settings)));
}
