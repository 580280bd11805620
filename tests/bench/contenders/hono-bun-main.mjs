/** Hono on Bun. */

import { app } from './hono-app.mjs';
import { PORT } from './mapping-main.mjs';

Bun.serve({ hostname: '127.0.0.1', port: PORT, idleTimeout: 255, fetch: app.fetch });
