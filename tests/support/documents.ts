/** The project's files and Markdown documents, as far as tests look into them. */

export const ROOT = new URL('../..', import.meta.url).pathname;

export type Document = Awaited<ReturnType<typeof readDocument>>;

const SAMPLE = /^```tsx?\n\/\/ (\S+)\n([\s\S]*?)^```$/gm;
const GLOBS = [new Bun.Glob('{src,tests,deploy,.github,.ci}/**/*'), new Bun.Glob('*')];

/** Without installed packages and what people keep for themselves. */
export async function projectFiles(): Promise<readonly string[]> {
  const found = GLOBS.map((glob) => Array.fromAsync(glob.scan({ cwd: ROOT, dot: true })));
  const paths = (await Promise.all(found)).flat();
  return paths.filter((path) => !path.includes('node_modules/') && path !== '.env');
}

/** @param path from the project's root */
export async function readDocument(path: string) {
  return { path, text: await Bun.file(ROOT + path).text() };
}

/** The text below a heading, up to the next one of its level or above. */
export function section({ path, text }: Document, heading: string): string {
  const level = heading.indexOf(' ');
  const begin = `\n${text}`.indexOf(`\n${heading}\n`);
  if (begin < 0) throw new Error(`${path} has no "${heading}"`);
  const rest = text.slice(begin + heading.length);
  return rest.split(new RegExp(`^#{1,${level}} `, 'm'), 1)[0] ?? '';
}

/**
 * The code samples of a document, by the name of the file that each has in its first line.
 *
 * @param replacements what stands for the texts that the samples are written with, such as addresses
 */
export function samplesIn({ text }: Document, replacements: Readonly<Record<string, string>>) {
  let replaced = text;
  for (const [from, to] of Object.entries(replacements)) replaced = replaced.replaceAll(from, to);
  return new Map(Array.from(replaced.matchAll(SAMPLE), ([, name = '', code = '']) => [name, code]));
}
