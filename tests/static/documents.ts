/** Finds links that lead nowhere, names of files that do not exist, and source files that do not begin with their job. */

import { dirname, resolve } from 'node:path';
import { type Document, projectFiles, readDocument } from '../support/documents.ts';

const MAX_LINES = 300;
/** Of all documents together, without the history and the figures of the benchmark: more is not read. */
const MAX_WORDS = 17_600;
/** No bars of tables. */
const WORD = /[^\s|]*[\p{L}\p{N}][^\s|]*/gu;
/** Tables name tests without `tests/`, and mostly without their ending. */
const NAMED_FILE = /`((?:src|tests|unit|integration|faults|client|studio|deploy|load|platform)\/[\w./-]+)`/g;
const CODE_BLOCK = /^```[\s\S]*?^```$/gm;

const files = new Set(await projectFiles());

function exists(path: string): boolean {
  const folder = path.replace(/\/?$/, '/');
  return files.has(path) || [...files].some((file) => file.startsWith(folder));
}

export async function documentProblems(): Promise<string[]> {
  const documents = await Promise.all([...files].filter((path) => path.endsWith('.md')).map(readDocument));
  const read = documents.filter(({ path }) => path !== 'CHANGELOG.md' && !path.includes('/results/'));
  const words = read.flatMap(({ text }) => text.match(WORD) ?? []).length;
  return [
    ...documents.flatMap((document) => problemsIn(document, documents)),
    ...(await sourceProblems()),
    ...(words > MAX_WORDS ? [`the documents have ${words} words, more than ${MAX_WORDS}`] : []),
  ];
}

function problemsIn({ path, text }: Document, documents: readonly Document[]): string[] {
  const all = (pattern: RegExp, searched = text) =>
    Array.from(searched.matchAll(pattern), ([, name = '']) => name);
  const leadsNowhere = (link: string) => {
    const [file = '', anchor = ''] = link.split('#');
    const target = file === '' ? path : resolve('/', dirname(path), file).slice(1);
    const document = documents.find((each) => each.path === target);
    return !exists(target) || (anchor !== '' && !(document && anchorsIn(document).includes(anchor)));
  };
  const links = all(/\]\(([^)\s]+)\)/g, text.replace(CODE_BLOCK, '').replace(/`[^`\n]+`/g, ''));
  const isNamed = (name: string) => [name, `tests/${name}`, `tests/${name}.test.ts`].some(exists);
  return [
    ...links
      .filter((link) => !/^[a-z]+:/.test(link) && leadsNowhere(link))
      .map((link) => `a link to ${link}`),
    ...all(NAMED_FILE).filter((name) => !isNamed(name)),
  ].map((problem) => `${path} has ${problem}, which does not exist`);
}

/** The anchors that GitHub gives to the headings. */
function anchorsIn({ text }: Document): string[] {
  const headings = text
    .replace(CODE_BLOCK, '')
    .toLowerCase()
    .matchAll(/^#+ (.+)$/gm);
  return Array.from(headings, ([, heading = '']) =>
    heading.replace(/[^\p{L}\p{N}\s_-]/gu, '').replaceAll(' ', '-'),
  );
}

async function sourceProblems(): Promise<string[]> {
  const paths = [...files].filter((path) => /^src\/.*\.ts$/.test(path));
  const sources = await Promise.all(paths.map(readDocument));
  return sources.flatMap(({ path, text }) => {
    if (!text.startsWith('/**')) return `${path} does not begin with its job`;
    return text.split('\n').length > MAX_LINES ? `${path} has more than ${MAX_LINES} lines` : [];
  });
}
