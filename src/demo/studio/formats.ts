/** Formats the values inside a text by their kind: `{bytes:bytes}` becomes "1.4 MB". */

export type Value = string | number | Date;
export type Values = Readonly<Record<string, Value>>;

const PLACEHOLDER = /\{(\w+)(?::(\w+))?\}/g;

const formats: Readonly<Record<string, (value: Value, language: string) => string>> = {
  number: (value, language) => new Intl.NumberFormat(language).format(Number(value)),
  /** The value is a share, from 0 to 1. */
  percent: (value, language) => new Intl.NumberFormat(language, { style: 'percent' }).format(Number(value)),
  /** The value is in milliseconds. */
  seconds: (value, language) =>
    new Intl.NumberFormat(language, {
      style: 'unit',
      unit: 'second',
      unitDisplay: 'narrow',
      minimumFractionDigits: 1,
      maximumFractionDigits: 1,
    }).format(Number(value) / 1_000),
  milliseconds: (value, language) =>
    new Intl.NumberFormat(language, {
      style: 'unit',
      unit: 'millisecond',
      unitDisplay: 'narrow',
      maximumFractionDigits: 0,
    }).format(Number(value)),
  bytes: (value, language) =>
    new Intl.NumberFormat(language, {
      style: 'unit',
      unit: Number(value) < 1e6 ? 'kilobyte' : 'megabyte',
      maximumFractionDigits: Number(value) < 1e6 ? 0 : 1,
    }).format(Number(value) / (Number(value) < 1e6 ? 1e3 : 1e6)),
  /** The value is in seconds. */
  clock: (value) => {
    const seconds = Math.floor(Number(value));
    return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
  },
  time: (value, language) =>
    new Intl.DateTimeFormat(language, { timeStyle: 'medium' }).format(new Date(value)),
  /** With the year only if it is another one. */
  date(value, language) {
    const date = new Date(value);
    const year = date.getFullYear() === new Date().getFullYear() ? {} : ({ year: 'numeric' } as const);
    const rest = { month: 'short', day: 'numeric', hour: 'numeric', minute: '2-digit' } as const;
    return new Intl.DateTimeFormat(language, { ...year, ...rest }).format(date);
  },
};

/** Inserts the values into the text, in the format of the language. */
export function formatText(text: string, values: Values, language: string): string {
  return text.replace(PLACEHOLDER, (whole, name: string, kind = '') => {
    const value = values[name];
    if (value === undefined) return whole;
    return formats[kind]?.(value, language) ?? String(value);
  });
}
