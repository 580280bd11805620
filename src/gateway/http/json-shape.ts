/** Decides whether JSON is cheap to parse, because a parser allocates for each array, object and value. */

const MAX_LEVELS = 64;
const MAX_BRACKETS = 1000;
const MAX_COMMAS = 1000;

const QUOTE = '"'.charCodeAt(0);
const BACKSLASH = '\\'.charCodeAt(0);
const COMMA = ','.charCodeAt(0);
const LEFT_BRACKET = '['.charCodeAt(0);
const RIGHT_BRACKET = ']'.charCodeAt(0);
const LEFT_BRACE = '{'.charCodeAt(0);
const RIGHT_BRACE = '}'.charCodeAt(0);

/**
 * Whether the JSON is nested deeper than 64 levels, or has more than 1,000 opening brackets and braces or more than
 * 1,000 commas. Those inside strings do not count. Malformed JSON counts like valid JSON up to its first error, where
 * the parser stops.
 *
 * @param json UTF-8, in which no byte of a multi-byte character equals an ASCII character
 */
export function isTooComplex(json: Uint8Array): boolean {
  let levels = 0;
  let brackets = 0;
  let commas = 0;
  for (let index = 0; index < json.length; index++) {
    switch (json[index]) {
      case QUOTE:
        index = endOfString(json, index + 1);
        break;
      case COMMA:
        if (++commas > MAX_COMMAS) return true;
        break;
      case LEFT_BRACKET:
      case LEFT_BRACE:
        if (++brackets > MAX_BRACKETS || ++levels > MAX_LEVELS) return true;
        break;
      case RIGHT_BRACKET:
      case RIGHT_BRACE:
        levels--;
    }
  }
  return false;
}

/** The index of the closing quote. A call of `indexOf()` for each of a million short strings would cost far more. */
function endOfString(json: Uint8Array, start: number): number {
  let index = start;
  while (index < json.length && json[index] !== QUOTE) index += json[index] === BACKSLASH ? 2 : 1;
  return index;
}
