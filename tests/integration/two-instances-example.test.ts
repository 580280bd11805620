import { afterAll, beforeAll, describe, expect, it } from 'bun:test';
import { randomBytes } from 'node:crypto';
import { dirname } from 'node:path';
import type { Subprocess } from 'bun';
import type { Sandbox } from '../../src/sandbox/sandbox.ts';
import { CookieJar } from '../../src/sandbox/tour/cookie-jar.ts';
import { signInThroughForm } from '../../src/sandbox/tour/sign-in-through-form.ts';
import { freePorts } from '../support/free-ports.ts';
import { SANDBOX_CLIENT, startTestSandbox } from '../support/sandbox-account.ts';
import { ORIGIN } from '../support/world.ts';

const MISSING = ['redis-server', 'haproxy'].filter((program) => !Bun.which(program));
if (MISSING.length) console.log(`skipped: two-instances-example.test.ts needs ${MISSING.join(' and ')}`);

describe.skipIf(MISSING.length > 0)('deploy/two-instances/run.sh', () => {
  let sandbox: Sandbox;
  let example: Subprocess<'ignore', 'pipe', 'inherit'>;
  let base: URL;
  let statistics = '';

  beforeAll(async () => {
    sandbox = await startTestSandbox();
    const port = await freePorts(5);
    statistics = `http://127.0.0.1:${port + 4}`;
    base = new URL(`http://127.0.0.1:${port}`);
    example = Bun.spawn(['sh', new URL('../../deploy/two-instances/run.sh', import.meta.url).pathname], {
      env: {
        PATH: `${dirname(process.execPath)}:${process.env['PATH']}`,
        LISTEN: `127.0.0.1:${port}`,
        PORT_A: String(port + 1),
        PORT_B: String(port + 2),
        REDIS_PORT: String(port + 3),
        STATISTICS: `127.0.0.1:${port + 4}`,
        UPSTREAM_URL: sandbox.upstream.url,
        IDP_URL: sandbox.identityProviderUrl,
        IDP_CLIENT_ID: SANDBOX_CLIENT.clientId,
        IDP_REDIRECT_URI: SANDBOX_CLIENT.redirectUri,
        ALLOWED_ORIGINS: ORIGIN,
        COOKIE_KEYS: randomBytes(32).toString('base64url'),
      },
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'inherit',
    });
    await bothAreUp();
  }, 60_000);

  afterAll(async () => {
    example.kill('SIGTERM');
    await Promise.all([example.exited, sandbox.stop()]);
  });

  /** Waits until HAProxy has seen the health of both. */
  async function bothAreUp(): Promise<void> {
    while ((await instances().catch(() => [])).filter(({ status }) => status === 'UP').length < 2)
      await Bun.sleep(50);
  }

  /** What HAProxy's statistics say of the two: state, and how many requests each has answered with 200. */
  async function instances(): Promise<{ status: string; answered: number }[]> {
    const [head = '', ...rows] = (await (await fetch(`${statistics}/;csv`)).text()).split('\n');
    const columns = head.replace('# ', '').split(',');
    return rows
      .map((row) => row.split(','))
      .filter((row) => row[0] === 'gateways' && row[1] !== 'BACKEND')
      .map((row) => ({
        status: row[columns.indexOf('status')] ?? '',
        answered: Number(row[columns.indexOf('hrsp_2xx')]),
      }));
  }

  it('serves one session from both instances, and refreshes it once', async () => {
    const jar = new CookieJar();
    const { identityProviderUrl } = sandbox;
    const grant = await signInThroughForm({ ...SANDBOX_CLIENT, identityProviderUrl, name: 'Two', jar });
    const headers = { origin: ORIGIN, 'content-type': 'application/json' };
    const body = JSON.stringify({ code: grant.code, code_verifier: grant.codeVerifier });
    const signedIn = await jar.fetch(new URL('/api/auth/idp', base), { method: 'POST', headers, body });
    expect(await signedIn.text()).toBe('{"ok":true}');

    for (let round = 1; round <= 3; round++) {
      sandbox.upstream.expireAccessTokens();
      const calls = Array.from({ length: 40 }, () =>
        jar.fetch(new URL('/api/auth/session', base), { headers }),
      );
      expect((await Promise.all(calls)).map(({ status }) => status)).toEqual(Array(40).fill(200));
      expect(sandbox.upstream.counts().refreshes).toBe(round);
    }
    expect(sandbox.upstream.counts().refusedRefreshes).toBe(0);
    for (const { answered } of await instances()) expect(answered).toBeGreaterThan(0);
  });
});
