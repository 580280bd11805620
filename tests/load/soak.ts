/**
 * The long form of the load tests: `bun run soak [scenario ...]` prints figures, and exits with 1 when one is wrong. With
 * `bash tests/load/bounded-sockets.sh` before it, its sockets have the bounds of the shipped deployments.
 */

import type { Report } from './report.ts';
import { SCENARIOS, type Scenario, twoInstances } from './scenarios.ts';

const names = process.argv.slice(2).filter((argument) => !argument.startsWith('--'));
const [, minutes] = /--minutes=(\d+)/.exec(process.argv.join(' ')) ?? [];
const scenarios: Readonly<Record<string, Scenario>> = minutes
  ? { 'two-instances': twoInstances(Number(minutes)) }
  : SCENARIOS;
const unknown = names.filter((name) => !Object.hasOwn(scenarios, name));
if (unknown.length) throw new Error(`no such scenario: ${unknown}; there are ${Object.keys(scenarios)}`);
// An exit handler ends the processes of the scenario.
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));

let wrong = 0;
for (const [name, scenario] of Object.entries(scenarios)) {
  if (names.length && !names.includes(name)) continue;
  const { figures, problems } = await scenario.run().catch(failed);
  const outOfBounds = [
    ...Object.entries(scenario.most ?? {}).filter(([figure, limit]) => !(Number(figures[figure]) <= limit)),
    ...Object.entries(scenario.least ?? {}).filter(([figure, limit]) => !(Number(figures[figure]) >= limit)),
  ].map(([figure, limit]) => `${figure}: the limit is ${limit}`);
  console.log(name, figures, ...problems, ...outOfBounds);
  wrong += problems.length + outOfBounds.length;
}
console.log(wrong ? `${wrong} problems` : 'all scenarios passed');
process.exit(wrong ? 1 : 0);

function failed(error: unknown): Report {
  return { figures: {}, problems: [String(error)] };
}
