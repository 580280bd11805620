/** Request bodies: JSON near the schemas and far from them, forms, and bytes that are neither. */

import type { Random } from '../random.ts';
import { FORMS, LENGTHS, ODD_TEXTS, ODD_TYPES, ODD_VALUES } from './odd-texts.ts';

export interface Body {
  /** One character a byte. */
  readonly bytes: string;
  readonly contentType: string | undefined;
}

/** What the recording identity provider and upstream do with a code that ends so. */
const CODE_FLAVOURS = [
  'ok',
  'ok',
  'ok',
  'no',
  'bad',
  'list',
  'crlf',
  'semi',
  'big',
  'data',
  'reset',
  'refused',
  '503',
];
const VERIFIER = 'v'.repeat(43);
const JSON_TYPES = [
  'application/json',
  'application/json',
  'application/json',
  'application/json; charset=utf-8',
  'APPLICATION/JSON',
];

export function body(random: Random, target: string, marker: string, oddity: number): Body {
  const fields = target.includes('/auth/') ? signInFields(random, marker) : generationFields(random, marker);
  if (!random.chance(oddity)) return { bytes: object(fields), contentType: random.pick(JSON_TYPES) };
  const contentType = random.chance(0.5) ? random.pick(JSON_TYPES) : random.pick(ODD_TYPES);
  return random.make<Body>(
    () => ({ bytes: object(changed(random, fields)), contentType }),
    () => ({ bytes: object(changed(random, fields)), contentType: 'application/json' }),
    () => ({ bytes: random.pick(ODD_TEXTS), contentType: 'application/json' }),
    () => ({ bytes: random.pick(ODD_TEXTS), contentType: random.chance(0.3) ? undefined : contentType }),
    () => ({ bytes: form(random, fields), contentType: 'application/x-www-form-urlencoded' }),
    () => ({ bytes: random.bytes(random.below(300)), contentType }),
    () => ({ bytes: large(random, fields), contentType: 'application/json' }),
    () => ({
      bytes: `--b\r\nContent-Disposition: form-data; name="code"\r\n\r\nx\r\n--b--`,
      contentType: ODD_TYPES[3],
    }),
  );
}

type Fields = readonly (readonly [name: string, json: string])[];

function signInFields(random: Random, marker: string): Fields {
  return [
    ['code', `"code.${marker}.${random.pick(CODE_FLAVOURS)}"`],
    ['code_verifier', `"${VERIFIER}"`],
  ];
}

function generationFields(random: Random, marker: string): Fields {
  const fields: [string, string][] = [
    ['model', '"sandbox-music-1"'],
    ['prompt', `"Rain ${marker}"`],
    ['music_length_ms', random.chance(0.2) ? random.pick(LENGTHS) : '30000'],
  ];
  if (random.chance(0.3)) fields.push(['is_public', random.pick(['true', '"true"', '1', 'false'])]);
  return fields;
}

function changed(random: Random, fields: Fields): Fields {
  const result = [...fields];
  for (let left = random.between(1, 3); left > 0; left--) {
    const index = random.below(fields.length);
    const name = result[index]?.[0] ?? 'code';
    random.make<unknown>(
      () => result.splice(index, 1),
      () => result.splice(index, 1, [name, random.pick(ODD_VALUES)]),
      () => result.push([name, random.pick(ODD_VALUES)]),
      () =>
        result.unshift([
          random.pick(['__proto__', 'constructor', 'prototype', '', 'a\\u0000', 'data']),
          random.pick(ODD_VALUES),
        ]),
      () =>
        result.splice(index, 1, [name, `"${'y'.repeat(random.pick([42, 43, 119, 120, 121, 4100, 4101]))}"`]),
    );
  }
  return result;
}

function object(fields: Fields): string {
  return `{${fields.map(([name, json]) => `"${name}":${json}`).join(',')}}`;
}

function form(random: Random, fields: Fields): string {
  const pairs = fields.map(([name, json]) => `${name}=${json.replaceAll('"', '')}`);
  if (random.chance(0.5)) pairs.push(random.pick(FORMS));
  if (random.chance(0.05))
    pairs.push(...Array.from({ length: random.pick([999, 1001, 5000]) }, (_, index) => `f${index}=1`));
  return pairs.join('&');
}

/** Deep, wide or close to the limit of 2 MiB. */
function large(random: Random, fields: Fields): string {
  if (random.chance(0.03)) {
    const padding = 2 * 1024 * 1024 - object(fields).length + random.between(-30, 30);
    return object([...fields, ['pad', `"${'p'.repeat(padding)}"`]]);
  }
  const depth = random.pick([50, 500, 5000, 20_000]);
  return random.make(
    () => '['.repeat(depth) + ']'.repeat(depth),
    () => '{"a":'.repeat(depth) + '}'.repeat(depth),
    () => object([...fields, ['deep', '['.repeat(depth) + ']'.repeat(depth)]]),
    () => object([...fields, ['digits', '9'.repeat(depth)]]),
    () => `[${'0,'.repeat(depth)}0]`,
  );
}
