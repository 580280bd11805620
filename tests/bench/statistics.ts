/** Median and spread of a few repetitions, and how figures are written. */

export function summarize(values: readonly number[]) {
  const sorted = values.toSorted((one, other) => one - other);
  const at = (index: number) => sorted[index] ?? Number.NaN;
  const middle = (sorted.length - 1) / 2;
  return {
    median: (at(Math.floor(middle)) + at(Math.ceil(middle))) / 2,
    least: at(0),
    most: at(sorted.length - 1),
  };
}

/** The median, and ± half of the range from the least to the most. */
export function figure(values: readonly number[]): string {
  const { median, least, most } = summarize(values);
  return least === most ? number(median) : `${number(median)} ± ${number((most - least) / 2)}`;
}

export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.ceil((sorted.length * percent) / 100) - 1] ?? Number.NaN;
}

export function number(value: number): string {
  return value.toFixed(Math.abs(value) < 9.95 ? 1 : 0);
}
