import { afterAll, beforeAll, describe, expect, it } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { ROOT } from '../support/documents.ts';
import { runToEnd } from '../support/run-to-end.ts';

/** What files of a folder must not import. */
const REFUSED = {
  'src/gateway/settings': ['../http/errors.ts', '../../check/finding.ts'],
  'src/gateway/record': ['../http/errors.ts'],
  'src/gateway/http': ['../upstream/fetch-upstream.ts', '../session/session.ts', '../telemetry/telemetry.ts'],
  'src/gateway/http/admission': ['../../upstream/fetch-upstream.ts'],
  'src/gateway/upstream': [
    '../refresh/coordinator.ts',
    '../session/cookies.ts',
    '../gateway.ts',
    '../../check/finding.ts',
  ],
  'src/gateway/refresh': ['../session/session.ts'],
  'src/gateway/session': ['../routes/auth.ts', '../telemetry/telemetry.ts'],
  'src/gateway/routes': [
    '../../demo/sandbox/sandbox.ts',
    '../../client/gateway-client.ts',
    '../gateway.ts',
    '../openapi/openapi.yaml',
    '../telemetry/metrics.ts',
  ],
  'src/gateway/telemetry': ['../routes/auth.ts', '../upstream/fetch-upstream.ts', '../gateway.ts'],
  'src/gateway': ['../client/gateway-client.ts', '../check/finding.ts'],
  'src/check': [
    '../gateway/session/session.ts',
    '../gateway/routes/auth.ts',
    '../gateway/gateway.ts',
    '../demo/demo.ts',
  ],
  'src/client': [
    '../gateway/routes/schemas.ts',
    '../gateway/routes/proxy-target.ts',
    '../gateway/settings/settings.ts',
    '../demo/demo.ts',
    'elysia',
    'node:crypto',
  ],
  'src/demo/sandbox': ['../../gateway/session/session.ts', '../../check/finding.ts'],
  'src/demo/studio': ['../../gateway/routes/schemas.ts', '../demo-addresses.ts'],
};
/** What files of a folder may import. */
const ALLOWED = {
  'src/gateway/routes': ['../session/session.ts'],
  'src/gateway/session': ['../refresh/coordinator.ts'],
  'src/gateway/refresh': ['../upstream/upstream-api.ts'],
  'src/gateway/upstream': ['../http/errors.ts'],
  'src/gateway/http': ['../settings/settings.ts'],
  'src/gateway/http/admission': ['../errors.ts'],
  'src/gateway/telemetry': ['../record/request-record.ts'],
  'src/check': ['../gateway/refresh/redis-commands.ts'],
  'src/demo': ['../gateway/gateway.ts'],
  'src/demo/tour': ['../../client/gateway-client.ts'],
  'src/demo/studio': ['../../client/gateway-client.ts'],
};

function importsOf(table: Readonly<Record<string, readonly string[]>>, kind: string) {
  return Object.entries(table).flatMap(([place, modules]) =>
    modules.map((imported, index) => ({ place, imported, file: `${place}/${kind}-${index}.ts` })),
  );
}

const refused = importsOf(REFUSED, 'refused');
const allowed = importsOf(ALLOWED, 'allowed');

describe('the lint configuration', () => {
  let folder = '';
  let report = '';

  beforeAll(async () => {
    folder = await mkdtemp(`${tmpdir()}/import-direction-`);
    const configuration: Record<string, unknown> = await Bun.file(`${ROOT}.biome.json`).json();
    await Bun.write(`${folder}/.biome.json`, JSON.stringify({ ...configuration, vcs: { enabled: false } }));
    for (const { file, imported } of [...refused, ...allowed]) {
      await Bun.write(`${folder}/${file}`, `import '${imported}';\n`);
    }
    const lint = [`${ROOT}node_modules/.bin/biome`, 'lint', '--colors=off', '--max-diagnostics=none'];
    const { output, errors } = await runToEnd(lint, { cwd: folder });
    report = output + errors;
  });
  afterAll(() => rm(folder, { recursive: true }));

  it.each(refused)('refuses in $place an import of $imported', ({ file }) =>
    expect(report).toContain(`${file}:1:8 lint/style/noRestrictedImports`),
  );

  it.each(allowed)('allows in $place an import of $imported', ({ file }) =>
    expect(report).not.toContain(`${file}:`),
  );
});
