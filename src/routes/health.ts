/** Says that the service is up; the one route without an origin check. */

import { Elysia } from 'elysia';

export const HEALTH_PATH = '/api/health';

export function healthRoutes(serviceName: string) {
  return new Elysia({ name: 'health' }).get(HEALTH_PATH, () => ({ service: serviceName, status: 'ok' }));
}
