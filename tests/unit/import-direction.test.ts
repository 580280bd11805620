import { afterAll, beforeAll, describe, expect, it } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';

const REFUSED = [
  ['src/gateway/settings', '../http/errors.ts'],
  ['src/gateway/trace', '../http/errors.ts'],
  ['src/gateway/http', '../upstream/fetch-upstream.ts'],
  ['src/gateway/http', '../session/session.ts'],
  ['src/gateway/http', '../telemetry/telemetry.ts'],
  ['src/gateway/http/admission', '../../upstream/fetch-upstream.ts'],
  ['src/gateway/upstream', '../refresh/coordinator.ts'],
  ['src/gateway/upstream', '../session/cookies.ts'],
  ['src/gateway/upstream', '../gateway.ts'],
  ['src/gateway/refresh', '../session/session.ts'],
  ['src/gateway/session', '../routes/auth.ts'],
  ['src/gateway/session', '../telemetry/telemetry.ts'],
  ['src/gateway/routes', '../../demo/sandbox/sandbox.ts'],
  ['src/gateway/routes', '../../client/gateway-client.ts'],
  ['src/gateway/routes', '../gateway.ts'],
  ['src/gateway/routes', '../openapi/document.ts'],
  ['src/gateway/routes', '../telemetry/metrics.ts'],
  ['src/gateway/telemetry', '../routes/auth.ts'],
  ['src/gateway/telemetry', '../upstream/fetch-upstream.ts'],
  ['src/gateway/telemetry', '../gateway.ts'],
  ['src/gateway/openapi', '../gateway.ts'],
  ['src/gateway/openapi', '../../client/gateway-client.ts'],
  ['src/gateway/openapi', '../../demo/demo.ts'],
  ['src/gateway', '../client/gateway-client.ts'],
  ['src/client', '../gateway/routes/proxy-target.ts'],
  ['src/client', '../gateway/settings/settings.ts'],
  ['src/client', '../demo/demo.ts'],
  ['src/client', 'elysia'],
  ['src/client', 'node:crypto'],
  ['src/demo/sandbox', '../../gateway/session/session.ts'],
  ['src/demo/studio', '../../gateway/routes/schemas.ts'],
  ['src/demo/studio', '../demo-addresses.ts'],
] as const;
const ALLOWED = [
  ['src/gateway/routes', '../session/session.ts'],
  ['src/gateway/session', '../refresh/coordinator.ts'],
  ['src/gateway/refresh', '../upstream/session-endpoints.ts'],
  ['src/gateway/upstream', '../http/errors.ts'],
  ['src/gateway/http', '../settings/settings.ts'],
  ['src/gateway/http/admission', '../errors.ts'],
  ['src/gateway/telemetry', '../trace/request-trace.ts'],
  ['src/gateway/openapi', '../routes/schemas.ts'],
  ['src/demo', '../gateway/gateway.ts'],
  ['src/demo/tour', '../../client/gateway-client.ts'],
  ['src/client', '../gateway/routes/schemas.ts'],
  ['src/demo/studio', '../../client/gateway-client.ts'],
] as const;

describe('the import direction, as the lint configuration has it', () => {
  const root = new URL('../..', import.meta.url).pathname;
  let folder = '';
  let report = '';

  beforeAll(async () => {
    folder = await mkdtemp(`${tmpdir()}/import-direction-`);
    const configuration: Record<string, unknown> = await Bun.file(`${root}.biome.json`).json();
    await Bun.write(`${folder}/.biome.json`, JSON.stringify({ ...configuration, vcs: { enabled: false } }));
    for (const [index, [place, imported]] of [...REFUSED, ...ALLOWED].entries()) {
      await Bun.write(`${folder}/${place}/file-${index}.ts`, `import '${imported}';\n`);
    }
    const lint = Bun.spawn(
      [`${root}node_modules/.bin/biome`, 'lint', '--colors=off', '--max-diagnostics=none'],
      {
        cwd: folder,
        stdout: 'pipe',
        stderr: 'pipe',
      },
    );
    report = (await lint.stdout.text()) + (await lint.stderr.text());
  });
  afterAll(() => rm(folder, { recursive: true }));

  it.each(REFUSED.map(([place, imported], index) => ({ place, imported, index })))(
    'refuses in $place an import of $imported',
    ({ place, index }) =>
      expect(report).toContain(`${place}/file-${index}.ts:1:8 lint/style/noRestrictedImports`),
  );

  it.each(ALLOWED.map(([place, imported], index) => ({ place, imported, index: REFUSED.length + index })))(
    'allows in $place an import of $imported',
    ({ place, index }) => expect(report).not.toContain(`${place}/file-${index}.ts:`),
  );
});
