import { beforeEach, expect, it, jest } from 'bun:test';
import { CollectedLines } from '../../src/gateway/telemetry/collected-lines.ts';

beforeEach(() => void jest.useFakeTimers());

it('a single line is passed on at once, and those that follow within 100 ms together', () => {
  const passed: string[] = [];
  const lines = new CollectedLines((text) => passed.push(text));
  for (const line of ['1', '2', '3']) lines.write(line);
  jest.advanceTimersByTime(99);
  expect(passed).toEqual(['1']);
  jest.advanceTimersByTime(1);
  lines.write('4');
  expect(passed).toEqual(['1', '23']);
  jest.advanceTimersByTime(200);
  lines.write('5');
  expect(passed).toEqual(['1', '23', '4', '5']);
});

it('at most 16 KB of lines wait, and none at the end', () => {
  const passed: string[] = [];
  const lines = new CollectedLines((text) => passed.push(text));
  for (let line = 0; line < 17; line++) lines.write('x'.repeat(1024));
  expect(passed.map(({ length }) => length)).toEqual([1024, 16 * 1024]);
  lines.write('last');
  for (let flush = 0; flush < 2; flush++) lines.flush();
  expect(passed.slice(2)).toEqual(['last']);
});
