/** Finds packages without an exact version and a checksum, and versions that differ from place to place. */

import manifest from '../../package.json';
import clientManifest from '../../src/client/package.json';
import benchManifest from '../bench/package.json';
import { ROOT } from '../support/documents.ts';

const EXACT = /^(npm:\S+@)?\d+\.\d+\.\d+$/;
const LOCKS = ['bun.lock', 'tests/bench/bun.lock'];
const INSTALLING = ['package.json', 'Containerfile', 'deploy/music-gateway@.service'];
/** Files that may name a version of Bun, and how often each does. */
const BUN_VERSIONS = {
  Containerfile: 1,
  'README.md': 5,
  'src/README.md': 1,
  'CONTRIBUTING.md': 0,
  '.ci/run': 0,
  '.github/workflows/ci.yml': 0,
};

const read = (path: string) => Bun.file(ROOT + path).text();

export async function packageProblems(): Promise<string[]> {
  const { dependencies, devDependencies } = manifest;
  const all = { ...dependencies, ...devDependencies, ...benchManifest.dependencies };
  const version = (await read('.bun-version')).trim();
  const problems = Object.entries(all)
    .filter(([, range]) => !EXACT.test(range))
    .map(([name, range]) => `${name} has no exact version, but ${range}`);
  const expect = (isRight: boolean, problem: string) => void (isRight || problems.push(problem));

  for (const lock of LOCKS) {
    const packages = Array.from(
      (await read(lock)).matchAll(/^ {4}"\S+": \[(.*)\],?$/gm),
      ([, entry = '']) => entry,
    );
    expect(packages.length > 50, `${lock} has only ${packages.length} packages`);
    for (const entry of packages) expect(/"sha512-\S+"$/.test(entry), `${lock}: no checksum in ${entry}`);
  }
  for (const file of INSTALLING) {
    const installs = (await read(file)).match(/bun install.*/g) ?? [];
    expect(installs.length > 0, `${file} installs nothing`);
    for (const install of installs)
      expect(install.includes('--frozen-lockfile'), `${file} ignores the lock file: ${install}`);
  }
  const types = devDependencies['bun-types'];
  expect(Bun.version === version, `this is Bun ${Bun.version}, not ${version} of .bun-version`);
  expect(types === version, `bun-types ${types} are not of Bun ${version}`);
  for (const [file, times] of Object.entries(BUN_VERSIONS)) {
    const named = Array.from(
      (await read(file)).matchAll(/\bbun\b\S*?[:@ ](\d[\d.]*\d)/gi),
      ([, found]) => found,
    );
    const isRight = named.length === times && named.every((found) => found === version);
    expect(isRight, `${file} names Bun ${named.join(', ')} instead of ${times} times ${version}`);
  }
  const clients = JSON.stringify([clientManifest.version, clientManifest.dependencies]);
  const tested = JSON.stringify([manifest.version, { oauth4webapi: `^${dependencies.oauth4webapi}` }]);
  expect(clients === tested, `the client has ${clients}, and is tested as ${tested}`);
  return problems;
}
