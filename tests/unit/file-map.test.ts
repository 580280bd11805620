import { describe, expect, it } from 'bun:test';
import { projectFiles, ROOT, readDocument, section } from '../support/documents.ts';

const MOST_LINES = 300;

/** The paths of the indented map: folders end with a slash. */
function pathsIn(map: string): string[] {
  const folders: string[] = [];
  return map.split('\n').flatMap((line) => {
    const [, indent = '', names] = /^( *)(\S+(?:, \S+)*)(?: {2}|$)/.exec(line) ?? [];
    if (!names) return [];
    folders.length = indent.length / 2;
    const paths = names.split(', ').map((name) => folders.join('') + name);
    if (names.endsWith('/')) folders.push(names);
    return paths;
  });
}

const sources = (await projectFiles()).filter((path) => path.startsWith('src/') && !path.endsWith('.md'));
const [, block = ''] = section(await readDocument('CONTRIBUTING.md'), '## File map').split('```\n');
const mapped = pathsIn(block);
/** Folders that stand for all that is in them. */
const leaves = mapped.filter(
  (path) => path.endsWith('/') && !mapped.some((other) => other !== path && other.startsWith(path)),
);

describe('the file map', () => {
  it('names each source file or its folder', () => {
    const isMapped = (path: string) =>
      mapped.includes(path) || leaves.some((folder) => path.startsWith(folder));
    expect(sources.length).toBeGreaterThan(100);
    expect(sources.filter((path) => !isMapped(path))).toEqual([]);
  });

  it('names no file that does not exist', async () => {
    const files = await projectFiles();
    const isThere = (path: string) =>
      files.some((file) => (path.endsWith('/') ? file.startsWith(path) : file === path));
    expect(mapped.length).toBeGreaterThan(50);
    expect(mapped.filter((path) => !isThere(path))).toEqual([]);
  });
});

describe.each(sources.filter((path) => path.endsWith('.ts')))('%s', (path) => {
  it('begins with its job and has at most 300 lines', async () => {
    const text = await Bun.file(ROOT + path).text();
    expect(text).toStartWith('/**');
    expect(text.split('\n').length).toBeLessThanOrEqual(MOST_LINES);
  });
});
