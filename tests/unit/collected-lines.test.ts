import { afterEach, beforeEach, expect, it, jest } from 'bun:test';
import { CollectedLines } from '../../src/gateway/telemetry/collected-lines.ts';

let passed: string[];
let lines: CollectedLines;
beforeEach(() => {
  jest.useFakeTimers();
  passed = [];
  lines = new CollectedLines((text) => passed.push(text));
});
afterEach(() => void jest.useRealTimers());

it('a single line is passed on at once, and those that follow within 100 ms together', () => {
  for (const line of ['1', '2', '3']) lines.write(line);
  jest.advanceTimersByTime(99);
  expect(passed).toEqual(['1']);
  jest.advanceTimersByTime(1);
  expect(passed).toEqual(['1', '23']);
  lines.write('4');
  expect(passed).toEqual(['1', '23']);
  jest.advanceTimersByTime(100);
  expect(passed).toEqual(['1', '23', '4']);
  jest.advanceTimersByTime(100);
  lines.write('5');
  expect(passed).toEqual(['1', '23', '4', '5']);
});

it('at most 16 KB of lines wait, and none at the end', () => {
  for (let line = 0; line < 17; line++) lines.write('x'.repeat(1024));
  expect(passed.map(({ length }) => length)).toEqual([1024, 16 * 1024]);
  lines.write('last');
  lines.flush();
  lines.flush();
  expect(passed.slice(2)).toEqual(['last']);
});
