import { expect, it } from 'bun:test';
import { mkdir } from 'node:fs/promises';
import { makeCertificate } from '../support/certificate.ts';
import { eventually } from '../support/eventually.ts';
import { freePorts } from '../support/free-ports.ts';
import { startGatewayProcess } from '../support/gateway-process.ts';
import { PATIENT_WITH_REDIS, REDIS_SERVER, RedisAdmin, startRedis } from '../support/redis.ts';
import { describeWith, program } from '../support/requirements.ts';
import { runToEnd } from '../support/run-to-end.ts';

const SECRET = 'password-of-redis';
/** For the same address as the trusted one, and signed with its own key. */
const OTHER = '-x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=test -addext subjectAltName=IP:127.0.0.1';

describeWith([REDIS_SERVER, program('openssl')], 'an instance whose Redis has a certificate', () => {
  it('uses Redis from the moment when it is one that the instance trusts', async () => {
    await using stack = new AsyncDisposableStack();
    const port = await freePorts(1);
    const redis = stack.use(await startRedis());
    const admin = stack.use(new RedisAdmin(redis.url));
    const [trusted, other] = [`${redis.folder}/trusted`, `${redis.folder}/other`];
    await makeCertificate(trusted);
    await mkdir(other);
    const made = ['-keyout', `${other}/key.pem`, '-out', `${other}/certificate.pem`];
    expect(await runToEnd(['openssl', 'req', ...OTHER.split(' '), ...made])).toMatchObject({ status: 0 });
    const show = async (folder: string) => {
      const [certificate, key] = [`${folder}/certificate.pem`, `${folder}/key.pem`];
      const files = ['tls-cert-file', certificate, 'tls-key-file', key, 'tls-ca-cert-file', certificate];
      await admin.send('CONFIG', ['SET', 'tls-auth-clients', 'no', ...files, 'tls-port', String(port)]);
    };
    await show(other);
    await admin.send('CONFIG', ['SET', 'requirepass', SECRET]);
    const lines: string[] = [];
    const settings = {
      UPSTREAM_URL: 'http://127.0.0.1:1',
      REDIS_URL: `rediss://:${SECRET}@127.0.0.1:${port}`,
      NODE_EXTRA_CA_CERTS: `${trusted}/certificate.pem`,
      BUN_OPTIONS: PATIENT_WITH_REDIS,
    };
    const gateway = stack.use(await startGatewayProcess(settings, (line) => lines.push(line)));
    await eventually(() => gateway.said('Redis cannot be used') === 1, 'Redis not to be trusted');
    await show(trusted);
    await eventually(() => gateway.said('Redis can be used again') === 1, 'Redis to be trusted');
    expect(lines.join('\n') + gateway.stderr()).not.toContain(SECRET);
  });
});
