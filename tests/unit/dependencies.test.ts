import { describe, expect, it } from 'bun:test';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import manifest from '../../package.json';
import clientManifest from '../../src/client/package.json';
import benchManifest from '../bench/package.json';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
const { dependencies, devDependencies } = manifest;

describe('the installation', () => {
  it.each(Object.entries({ ...dependencies, ...devDependencies, ...benchManifest.dependencies }))(
    'has one version of %s, not a range',
    (_, version) => expect(version).toMatch(/^(npm:\S+@)?\d+\.\d+\.\d+$/),
  );

  it('has of each package in the client the version with which the client is tested', () => {
    expect(clientManifest.version).toBe(manifest.version);
    expect(clientManifest.dependencies).toEqual({ oauth4webapi: `^${dependencies.oauth4webapi}` });
  });

  it.each(['bun.lock', 'tests/bench/bun.lock'])('checks the content of every package in %s', async (lock) => {
    const packages = [
      ...(await readFile(`${PROJECT}/${lock}`, 'utf8')).matchAll(/^ {4}"\S+": \[(.*)\],?$/gm),
    ];
    expect(packages.length).toBeGreaterThan(50);
    expect(packages.map(([, entry]) => entry ?? '').filter((entry) => !/"sha512-\S+"$/.test(entry))).toEqual(
      [],
    );
  });

  it.each(['package.json', 'Containerfile', 'deploy/music-gateway@.service'])(
    'follows the lock file in %s',
    async (file) => {
      const installs = (await readFile(`${PROJECT}/${file}`, 'utf8')).match(/bun install.*/g) ?? [];
      expect(installs.length).toBeGreaterThan(0);
      expect(installs.filter((install) => !install.includes('--frozen-lockfile'))).toEqual([]);
    },
  );

  it('has the Bun of .bun-version in these tests and in the types', async () => {
    const version = await readFile(`${PROJECT}/.bun-version`, 'utf8');
    expect({ tests: `${Bun.version}\n`, types: `${devDependencies['bun-types']}\n` }).toEqual({
      tests: version,
      types: version,
    });
  });

  it.each([
    ['Containerfile', 1],
    ['README.md', 5],
    ['src/README.md', 1],
    ['CONTRIBUTING.md', 0],
    ['.ci/run', 0],
    ['.github/workflows/ci.yml', 0],
  ])('has the Bun of .bun-version wherever %s names a version', async (file, times) => {
    const version = (await readFile(`${PROJECT}/.bun-version`, 'utf8')).trim();
    const text = await readFile(`${PROJECT}/${file}`, 'utf8');
    const named = [...text.matchAll(/\bbun\b\S*?[:@ ](\d[\d.]*\d)/gi)].map(([, found]) => found);
    expect(named).toEqual(Array(times).fill(version));
  });
});
