/** Puts table and plot into this folder's README, between two markers. */

const BEGIN = '<!-- bench -->';
const END = '<!-- /bench -->';

/** @throws Error when the markers are not there */
export function withBench(readme: string, content: string): string {
  const begin = readme.indexOf(BEGIN);
  const end = readme.indexOf(END);
  if (begin < 0 || end < begin) throw new Error(`the README has no ${BEGIN} ... ${END}`);
  return `${readme.slice(0, begin + BEGIN.length)}\n${content}\n${readme.slice(end)}`;
}
