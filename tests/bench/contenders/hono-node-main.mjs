/** Hono on Node. */

import { serve } from '@hono/node-server';
import { app } from './hono-app.mjs';
import { PORT } from './mapping-main.mjs';

serve({
  fetch: app.fetch,
  hostname: '127.0.0.1',
  port: PORT,
  serverOptions: { keepAliveTimeout: 3_600_000 },
});
