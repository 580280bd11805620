/** Finds packages without an exact version, installs that ignore the lock file, and versions of Bun that differ. */

import manifest from '../../package.json';
import clientManifest from '../../src/client/package.json';
import benchManifest from '../bench/package.json';
import { ROOT } from '../support/documents.ts';

const EXACT = /^(npm:\S+@)?\d+\.\d+\.\d+$/;
const INSTALLING = ['package.json', 'Containerfile', 'deploy/music-gateway@.service'];
const READMES = ['README.md', 'src/README.md', 'src/client/README.md', 'deploy/README.md'];
const NAMING_BUN = [...READMES, 'Containerfile', 'deploy/same-origin.md'];

const read = (path: string) => Bun.file(ROOT + path).text();

export async function packageProblems(): Promise<string[]> {
  const { dependencies, devDependencies } = manifest;
  const all = { ...dependencies, ...devDependencies, ...benchManifest.dependencies };
  const version = (await read('.bun-version')).trim();
  const problems = Object.entries(all)
    .filter(([, range]) => !EXACT.test(range))
    .map(([name, range]) => `${name} has no exact version, but ${range}`);
  const expectAll = (found: readonly string[], isRight: (each: string) => boolean, problem: string) => {
    if (found.length === 0 || !found.every(isRight)) problems.push(`${problem}: ${found.join(', ')}`);
  };
  for (const file of INSTALLING) {
    const installs = (await read(file)).match(/bun install.*/g) ?? [];
    expectAll(installs, (each) => each.includes('--frozen-lockfile'), `${file} ignores the lock file`);
  }
  for (const file of NAMING_BUN) {
    const named = (await read(file)).match(/\bbun\b\S*?[:@ ]\d[\d.]*\d/gi) ?? [];
    expectAll(named, (each) => each.replace(/.*[:@ ]/, '') === version, `${file} names another Bun`);
  }
  const bun = [Bun.version, devDependencies['bun-types']];
  expectAll(bun, (each) => each === version, 'this Bun, or its types, are not as in .bun-version');
  const images = (await read('Containerfile')).match(/(?<=image\.version=").*(?=")/g) ?? [];
  expectAll(images, (each) => each === manifest.version, `the image is not ${manifest.version}`);
  const client = JSON.stringify([clientManifest.version, clientManifest.dependencies]);
  const tested = JSON.stringify([manifest.version, { oauth4webapi: `^${dependencies.oauth4webapi}` }]);
  expectAll([client], (each) => each === tested, `the client differs from what is tested, ${tested}`);
  return problems;
}
