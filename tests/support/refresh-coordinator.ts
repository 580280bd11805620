/** The coordination of refreshes as a gateway puts it together, without the gateway. */

import { Admission } from '../../src/gateway/http/admission/admission.ts';
import { RefreshCoordinator } from '../../src/gateway/refresh/coordinator.ts';
import type { ReplayStore } from '../../src/gateway/refresh/store.ts';
import type { Settings } from '../../src/gateway/settings/settings.ts';
import { UpstreamApi } from '../../src/gateway/upstream/upstream-api.ts';

export function refreshCoordinatorOver(settings: Settings, store: ReplayStore): RefreshCoordinator {
  return new RefreshCoordinator(settings, store, new UpstreamApi(settings, new Admission(settings)));
}
