/** Medians and quartiles of some repetitions, and how figures are written. */

/** Between two values it is in proportion. */
export function quantile(values: readonly number[], fraction: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  const place = (sorted.length - 1) * fraction;
  const below = sorted[Math.floor(place)] ?? Number.NaN;
  const above = sorted[Math.ceil(place)] ?? Number.NaN;
  return below + (above - below) * (place % 1);
}

export function quartiles(values: readonly number[]) {
  const [lower = 0, median = 0, upper = 0] = [0.25, 0.5, 0.75].map((each) => quantile(values, each));
  return { lower, median, upper };
}

/** The median, and the quartiles unless they are the same. */
export function figure(values: readonly number[], write = number): string {
  const { lower, median, upper } = quartiles(values);
  return lower === upper ? write(median) : `${write(median)} [${write(lower)}–${write(upper)}]`;
}

export function ratio(value: number): string {
  return value.toFixed(2);
}

export function number(value: number): string {
  return value.toFixed(Math.abs(value) < 9.95 ? 1 : 0);
}
