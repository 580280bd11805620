/** Finds files from which Bun takes settings in production; a copied checkout may have brought one along. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';

const NAMES = ['.env', '.env.production', '.env.local', '.env.production.local'];

/** @param folder where the gateway is started */
export function environmentFileWarnings(production: boolean, folder: string): string[] {
  const files = production ? NAMES.map((name) => join(folder, name)).filter(existsSync) : [];
  return files.map((file) => `${file} sets what the environment does not, in production too`);
}
