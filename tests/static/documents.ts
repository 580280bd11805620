/** Finds links that lead nowhere, names of files that do not exist, and source files that the file map does not name. */

import {
  allDocuments,
  anchorsIn,
  type Document,
  linksIn,
  linkTarget,
  projectFiles,
  ROOT,
  readDocument,
  section,
} from '../support/documents.ts';

const MAX_LINES = 300;
const NAMED_FILE = /`((?:src|tests|deploy)\/[\w./-]+)`/g;
/** A test, as tables name it: without `tests/`, and mostly without its ending. */
const NAMED_TEST = /`((?:unit|integration|faults|page|browser|deploy|load|platform)\/[\w./-]+)`/g;

const files = new Set(await projectFiles());

function exists(path: string): boolean {
  const folder = path.replace(/\/?$/, '/');
  return files.has(path) || [...files].some((file) => file.startsWith(folder));
}

export async function documentProblems(): Promise<string[]> {
  const documents = await allDocuments();
  const perDocument = await Promise.all(documents.map(problemsIn));
  return [...perDocument.flat(), ...(await fileMapProblems()), ...(await sourceProblems())];
}

async function problemsIn(document: Document): Promise<string[]> {
  const named = (pattern: RegExp) => Array.from(document.text.matchAll(pattern), ([, name = '']) => name);
  const links = linksIn(document).filter((link) => !/^[a-z]+:/.test(link));
  const isBroken = await Promise.all(links.map((link) => leadsNowhere(document, link)));
  return [
    ...links.filter((_, index) => isBroken[index]).map((link) => `a link to ${link}, which leads nowhere`),
    ...named(NAMED_FILE)
      .filter((path) => !exists(path))
      .map((path) => `${path}, which does not exist`),
    ...named(NAMED_TEST)
      .filter((name) => !['', '.test.ts'].some((end) => exists(`tests/${name}${end}`) || exists(name + end)))
      .map((name) => `the test ${name}, which does not exist`),
  ].map((problem) => `${document.path} has ${problem}`);
}

async function leadsNowhere(document: Document, link: string): Promise<boolean> {
  const { path, anchor } = linkTarget(document, link);
  if (!exists(path)) return true;
  return anchor !== '' && !anchorsIn(await readDocument(path)).includes(anchor);
}

async function fileMapProblems(): Promise<string[]> {
  const [, map = ''] = section(await readDocument('CONTRIBUTING.md'), '## File map').split('```\n');
  const mapped = pathsIn(map);
  // A folder without lines of its own stands for all that is in it.
  const covers = (path: string) =>
    path.endsWith('/') && !mapped.some((other) => other !== path && other.startsWith(path));
  const isMapped = (file: string) =>
    mapped.some((path) => path === file || (covers(path) && file.startsWith(path)));
  const sources = [...files].filter((path) => path.startsWith('src/') && !path.endsWith('.md'));
  return [
    ...mapped.filter((path) => !exists(path)).map((path) => `has ${path}, which does not exist`),
    ...sources.filter((path) => !isMapped(path)).map((path) => `lacks ${path}`),
  ].map((problem) => `the file map ${problem}`);
}

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

async function sourceProblems(): Promise<string[]> {
  const sources = [...files].filter((path) => /^src\/.*\.ts$/.test(path));
  const texts = await Promise.all(sources.map((path) => Bun.file(ROOT + path).text()));
  return sources.flatMap((path, index) => {
    const text = texts[index] ?? '';
    if (!text.startsWith('/**')) return `${path} does not begin with its job`;
    return text.split('\n').length > MAX_LINES ? `${path} has more than ${MAX_LINES} lines` : [];
  });
}
