/** The project's Markdown documents, as far as tests look into them. */

import { dirname, resolve } from 'node:path';

export const ROOT = new URL('../..', import.meta.url).pathname;

export interface Document {
  /** From the project's root. */
  readonly path: string;
  readonly text: string;
}

const FOLDERS = new Bun.Glob('{src,tests,deploy,.github,.ci}/**/*');
const TOP = new Bun.Glob('*');

/** Without installed packages and what people keep for themselves. */
export async function projectFiles(): Promise<readonly string[]> {
  const found = [TOP, FOLDERS].map((glob) => Array.fromAsync(glob.scan({ cwd: ROOT, dot: true })));
  const paths = (await Promise.all(found)).flat();
  return paths.filter((path) => !path.includes('node_modules/') && path !== '.env');
}

export async function readDocument(path: string): Promise<Document> {
  return { path, text: await Bun.file(ROOT + path).text() };
}

export async function allDocuments(): Promise<readonly Document[]> {
  const paths = (await projectFiles()).filter((path) => path.endsWith('.md'));
  return Promise.all(paths.map(readDocument));
}

/** The text below a heading, up to the next one of its level or above. */
export function section({ path, text }: Document, heading: string): string {
  const level = heading.indexOf(' ');
  const begin = `\n${text}`.indexOf(`\n${heading}\n`);
  if (begin < 0) throw new Error(`${path} has no "${heading}"`);
  const rest = text.slice(begin + heading.length);
  return rest.split(new RegExp(`^#{1,${level}} `, 'm'), 1)[0] ?? '';
}

/** What is in backticks in the first column of the section's tables. */
export function namesInTables(text: string): string[] {
  const cells = text.split('\n').flatMap((line) => /^\| ([^|]+) \|/.exec(line)?.[1] ?? []);
  return cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name));
}

/** The addresses of links and pictures, code left out. */
export function linksIn({ text }: Document): string[] {
  return [...withoutCode(text).matchAll(/\]\(([^)\s]+)\)/g)].map(([, address = '']) => address);
}

/** What a relative link points at: a path from the root, and an anchor, if it has one. */
export function linkTarget(
  { path }: Document,
  link: string,
): { readonly path: string; readonly anchor: string } {
  const [file = '', anchor = ''] = link.split('#');
  const target = file === '' ? path : resolve('/', dirname(path), file).slice(1);
  return { path: target, anchor };
}

/** The anchors that GitHub gives to the headings. */
export function anchorsIn({ text }: Document): string[] {
  const headings = [...text.replace(/^```[\s\S]*?^```$/gm, '').matchAll(/^#+ (.+)$/gm)];
  return headings.map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

function withoutCode(text: string): string {
  return text.replace(/^```[\s\S]*?^```$/gm, '').replace(/`[^`\n]+`/g, '');
}
