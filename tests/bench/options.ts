/** The command's options. */

import { parseArgs } from 'node:util';

export interface Options {
  /** Few and short rounds: whether it works, not how fast. */
  readonly quick: boolean;
  /** Ids of contenders; all when there are none. */
  readonly only: readonly string[];
  /** Ids of rows; all when there are none. */
  readonly rows: readonly string[];
  /** The folder where the results go; undefined: they are only shown. */
  readonly results: string | undefined;
  readonly writeReadme: boolean;
}

/** @throws Error for an option that is none, or that does not go with another */
export function parseOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: 'boolean', default: false },
      only: { type: 'string', default: '' },
      rows: { type: 'string', default: '' },
      results: { type: 'string' },
      'write-readme': { type: 'boolean', default: false },
    },
  });
  const list = (text: string) => text.split(',').filter(Boolean);
  const only = list(values.only);
  const rows = list(values.rows);
  // A run that left things out must not take the place of one that did not.
  const isWhole = !values.quick && !only.length && !rows.length;
  if (values['write-readme'] && !isWhole) throw new Error('only a whole run may go into the README');
  return {
    quick: values.quick,
    only,
    rows,
    results: values.results ?? (isWhole ? new URL('results', import.meta.url).pathname : undefined),
    writeReadme: values['write-readme'],
  };
}
