/** The code samples of a document: each names its file in its first line. */

const SAMPLE = /^```tsx?\n\/\/ (\S+)\n([\s\S]*?)^```$/gm;

/**
 * Returns the code by the name of its file.
 *
 * @param replacements what stands for the texts that the samples are written with, such as addresses
 */
export function samplesIn(
  document: string,
  replacements: Readonly<Record<string, string>>,
): ReadonlyMap<string, string> {
  return new Map(
    Array.from(document.matchAll(SAMPLE), ([, name = '', code = '']) => [
      name,
      Object.entries(replacements).reduce((before, [from, to]) => before.replaceAll(from, to), code),
    ]),
  );
}
