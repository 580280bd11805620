import { expect } from 'bun:test';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { freePorts } from '../../support/free-ports.ts';
import { startGatewayProcess } from '../../support/gateway-process.ts';
import { REDIS_SERVER, RedisAdmin, startRedis } from '../../support/redis.ts';
import { itWith, LINUX } from '../../support/requirements.ts';
import { SANDBOX_CLIENT, startTestSandbox } from '../../support/sandbox-account.ts';
import { User } from '../../support/simulated-users.ts';

const newKey = () => randomBytes(32).toString('base64url');

itWith(
  [REDIS_SERVER, LINUX],
  'A sealed session survives the move of keys to a file, their rotation, and a Redis with a password from a file',
  async () => {
    await using stack = new AsyncDisposableStack();
    const sandbox = await startTestSandbox();
    stack.defer(() => sandbox.stop());
    const redis = stack.use(await startRedis());
    const admin = stack.use(new RedisAdmin(redis.url));
    const folder = await mkdtemp(`${tmpdir()}/secret-files-`);
    stack.defer(() => rm(folder, { recursive: true }));
    const files = { COOKIE_KEYS_FILE: `${folder}/cookie-keys`, REDIS_URL_FILE: `${folder}/redis-url` };
    const port = String(await freePorts(1));
    const base = new URL(`http://127.0.0.1:${port}`);
    let ada: User | undefined;
    /** Starts the gateway with these secrets, checks the session with a refresh, and stops the gateway. */
    const visit = async (secrets: Record<string, string>) => {
      await using gateway = await startGatewayProcess({
        PORT: port,
        UPSTREAM_URL: sandbox.upstream.url,
        IDP_URL: sandbox.identityProviderUrl,
        IDP_CLIENT_ID: SANDBOX_CLIENT.clientId,
        IDP_REDIRECT_URI: SANDBOX_CLIENT.redirectUri,
        ...secrets,
      });
      ada ??= await User.signIn({ base, sandbox }, 'Ada');
      sandbox.upstream.expireAccessTokens();
      await ada.check();
      const environment = await Bun.file(`/proc/${gateway.pid}/environ`).text();
      gateway.kill('SIGTERM');
      expect(await gateway.exited).toBe(0);
      expect(gateway.errors()).toBe('');
      return environment;
    };

    const [first, second] = [newKey(), newKey()];
    await visit({ COOKIE_KEYS: first });
    await Bun.write(files.COOKIE_KEYS_FILE, `${first}\n`);
    const { COOKIE_KEYS_FILE } = files;
    await visit({ COOKIE_KEYS_FILE });
    await Bun.write(files.COOKIE_KEYS_FILE, `${second},${first}\n`);
    await visit({ COOKIE_KEYS_FILE });
    // The refresh before has sealed the cookies with the second key.
    await Bun.write(files.COOKIE_KEYS_FILE, `${second}\n`);
    await visit({ COOKIE_KEYS_FILE });
    await admin.send('CONFIG', ['SET', 'requirepass', 'hush-redis']);
    await Bun.write(files.REDIS_URL_FILE, `${redis.url.replace('//', '//:hush-redis@')}\n`);
    const environment = await visit(files);
    expect(ada?.outcomes).toEqual([200, 200, 200, 200, 200]);
    expect(await admin.lifetimes()).not.toEqual([]);
    for (const secret of [first, second, 'hush-redis']) expect(environment).not.toContain(secret);
    expect(sandbox.upstream.counts().refusedRefreshes).toBe(0);

    await Bun.write(files.COOKIE_KEYS_FILE, newKey());
    await visit(files);
    // Not signed in: the profile is no longer Ada's.
    expect(ada?.outcomes.at(-1)).toBe('other');
  },
);
