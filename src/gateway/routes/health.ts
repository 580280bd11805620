/** Reports that the service is up. Any client may ask: the origin rule does not apply. */

import { Elysia } from 'elysia';

export const HEALTH_PATH = '/api/health';

export function healthRoutes(serviceName: string) {
  return new Elysia({ name: 'health' }).get(HEALTH_PATH, () => ({ service: serviceName, status: 'ok' }));
}
