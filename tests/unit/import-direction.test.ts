import { afterAll, beforeAll, describe, expect, it } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';

const REFUSED = [
  ['src/http', '../upstream/fetch-upstream.ts'],
  ['src/http', '../session/session.ts'],
  ['src/upstream', '../session/cookies.ts'],
  ['src/upstream', '../gateway.ts'],
  ['src/session', '../routes/auth.ts'],
  ['src/routes', '../sandbox/sandbox.ts'],
  ['src/routes', '../gateway.ts'],
  ['src/routes', '../openapi/document.ts'],
  ['src/openapi', '../gateway.ts'],
  ['src/openapi', '../client/gateway-client.ts'],
  ['src/sandbox', '../session/session.ts'],
  ['src/settings', '../http/errors.ts'],
  ['src/http', '../telemetry/telemetry.ts'],
  ['src/upstream', '../telemetry/metrics.ts'],
  ['src/session', '../telemetry/telemetry.ts'],
  ['src/routes', '../telemetry/metrics.ts'],
  ['src/telemetry', '../routes/auth.ts'],
  ['src/telemetry', '../upstream/fetch-upstream.ts'],
  ['src/telemetry', '../gateway.ts'],
  ['src/client', '../upstream/target.ts'],
  ['src/client', 'elysia'],
  ['src/client', 'node:crypto'],
  ['src/studio', '../routes/schemas.ts'],
  ['src/studio', '../sandbox/demo-addresses.ts'],
] as const;
const ALLOWED = [
  ['src/routes', '../session/session.ts'],
  ['src/session', '../upstream/session-endpoints.ts'],
  ['src/upstream', '../http/errors.ts'],
  ['src/http', '../settings.ts'],
  ['src/telemetry', '../http/request-trace.ts'],
  ['src/openapi', '../routes/schemas.ts'],
  ['src/sandbox', '../gateway.ts'],
  ['src/sandbox', '../client/gateway-client.ts'],
  ['src/client', '../routes/schemas.ts'],
  ['src/studio', '../client/gateway-client.ts'],
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
