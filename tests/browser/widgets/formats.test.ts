import { describe, expect, it } from 'bun:test';
import { formatText } from '../../../src/demo/studio/formats.ts';

const AT = new Date('2026-03-04T15:06:07Z');

describe('a value in a text', () => {
  it.each([
    ['{n:number}', { n: 4_100 }, '4,100'],
    ['{n}', { n: 4_100 }, '4100'],
    ['{s:seconds}', { s: 1_260 }, '1.3s'],
    ['{s:seconds}', { s: 0 }, '0.0s'],
    ['{s:milliseconds}', { s: 123.4 }, '123ms'],
    ['{b:bytes}', { b: 0 }, '0 kB'],
    ['{b:bytes}', { b: 999_499 }, '999 kB'],
    ['{b:bytes}', { b: 1_000_000 }, '1 MB'],
    ['{b:bytes}', { b: 1_440_044 }, '1.4 MB'],
    ['{c:clock}', { c: 0 }, '0:00'],
    ['{c:clock}', { c: 59.9 }, '0:59'],
    ['{c:clock}', { c: 60 }, '1:00'],
    ['{c:clock}', { c: 600 }, '10:00'],
    ['{t:time}', { t: AT }, '15:06:07'],
    ['{t:date}', { t: AT }, '4 Mar 2026, 15:06'],
  ])('%s with %j is %s', (text, values, expected) => {
    expect(formatText(text, values, 'en-GB')).toBe(expected);
  });

  it('is written as the language writes it', () => {
    expect(formatText('{d:date}', { d: AT }, 'sw')).toBe('4 Mac 2026, 15:06');
    expect(formatText('{n:number}', { n: 4_100.5 }, 'de')).toBe('4.100,5');
  });

  it('is put in wherever it is named, and a name without a value stays as it is', () => {
    expect(formatText('{a} {b} {a}', { a: 1 }, 'en')).toBe('1 {b} 1');
  });

  it('is never read as a text with placeholders itself', () => {
    expect(formatText('{a}{b}', { a: '{b}', b: '$&' }, 'en')).toBe('{b}$&');
  });
});
