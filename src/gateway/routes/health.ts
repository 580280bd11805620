/** Says that the service is up, to whoever asks: there is no origin check. */

import { Elysia } from 'elysia';

export const HEALTH_PATH = '/api/health';

export function healthRoutes(serviceName: string) {
  return new Elysia({ name: 'health' }).get(HEALTH_PATH, () => ({ service: serviceName, status: 'ok' }));
}
