import { describe, expect, it } from 'bun:test';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import manifest from '../../package.json';
import benchManifest from '../bench/package.json';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
const { dependencies, devDependencies } = manifest;

describe('what is installed', () => {
  it.each(Object.entries({ ...dependencies, ...devDependencies, ...benchManifest.dependencies }))(
    'is one version of %s, not a range',
    (_, version) => expect(version).toMatch(/^\d+\.\d+\.\d+$/),
  );

  it.each(['bun.lock', 'tests/bench/bun.lock'])('is known by its content: %s', async (lock) => {
    const packages = [
      ...(await readFile(`${PROJECT}/${lock}`, 'utf8')).matchAll(/^ {4}"\S+": \[(.*)\],?$/gm),
    ];
    expect(packages.length).toBeGreaterThan(50);
    expect(packages.map(([, entry]) => entry ?? '').filter((entry) => !/"sha512-\S+"$/.test(entry))).toEqual(
      [],
    );
  });

  it.each(['package.json', 'Containerfile', 'deploy/music-gateway.service'])(
    'is what the lock file says: %s',
    async (file) => {
      const installs = (await readFile(`${PROJECT}/${file}`, 'utf8')).match(/bun install.*/g) ?? [];
      expect(installs.length).toBeGreaterThan(0);
      expect(installs.filter((install) => !install.includes('--frozen-lockfile'))).toEqual([]);
    },
  );

  it('is one Bun everywhere', async () => {
    const versions = ['Containerfile', '.ci/run'].map(async (file) =>
      (await readFile(`${PROJECT}/${file}`, 'utf8')).matchAll(/bun[:@]([\d.]+\d)/g),
    );
    const found = (await Promise.all(versions)).flatMap((matches) =>
      [...matches].map(([, version]) => version),
    );
    expect(found.length).toBeGreaterThan(3);
    expect(new Set([...found, devDependencies['bun-types']])).toEqual(new Set([Bun.version]));
  });
});
