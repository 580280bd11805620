import { describe, expect, it } from 'bun:test';
import { dependencies, devDependencies, scripts } from '../../package.json';
import { createGateway } from '../../src/gateway/gateway.ts';
import { Admission } from '../../src/gateway/http/admission/admission.ts';
import { Exchange } from '../../src/gateway/http/exchange.ts';
import { Metrics } from '../../src/gateway/telemetry/metrics.ts';
import { Telemetry } from '../../src/gateway/telemetry/telemetry.ts';
import { readAlerts } from '../deploy/monitoring/alerts.ts';
import {
  allDocuments,
  anchorsIn,
  linksIn,
  linkTarget,
  namesInTables,
  projectFiles,
  readDocument,
  section,
} from '../support/documents.ts';
import { recordLog } from '../support/recorded-log.ts';
import { settingNames } from '../support/setting-names.ts';
import { testSettings } from '../support/world.ts';

const SETTING_NAMES = settingNames().toSorted();
const ADDRESSES = { UPSTREAM_URL: 'http://upstream.test', IDP_URL: 'http://idp.test' };
const LEVELS = ['debug', 'info', 'warn', 'error'];
const README = await readDocument('README.md');
const MONITORING = await readDocument('deploy/monitoring/README.md');
const RUNBOOK = await readDocument('deploy/monitoring/runbook.md');
const FILES = new Set(await projectFiles());
const DOCUMENTS = await allDocuments();

function exists(path: string): boolean {
  const folder = path.replace(/\/?$/, '/');
  return FILES.has(path) || [...FILES].some((file) => file.startsWith(folder));
}

describe('the README', () => {
  it('has a row for each setting, and for nothing else', () => {
    expect(namesInTables(section(README, '## Settings')).toSorted()).toEqual(SETTING_NAMES);
  });

  it('has a row with the reason for each package, and for nothing else', () => {
    const packages = Object.keys({ ...dependencies, ...devDependencies });
    const heading = '## Dependencies, and why each';
    expect(namesInTables(section(README, heading)).toSorted()).toEqual(packages.toSorted());
  });

  it('names each command', () => {
    const commands = Object.keys(scripts).map((name) => `bun run ${name}`);
    const text = section(README, '## Commands');
    expect(commands.filter((command) => !text.includes(`\`${command}\``))).toEqual([]);
  });

  it('has a row for each route', () => {
    const { routes } = createGateway({
      logger: recordLog().logger,
      settings: testSettings(ADDRESSES),
    });
    const text = section(README, '## Routes');
    const paths = routes.map(({ path }) => path.replace(/\*$/, ''));
    expect(paths.length).toBeGreaterThan(5);
    expect(paths.filter((path) => !text.includes(path))).toEqual([]);
  });

  it('has beside it an .env.example with each setting', async () => {
    const example = await Bun.file(new URL('../../.env.example', import.meta.url)).text();
    const shown = [...example.matchAll(/^(?:# )?([A-Z_]+)=/gm)].map(([, name = '']) => name);
    expect(shown.toSorted()).toEqual(SETTING_NAMES);
  });
});

describe.each(DOCUMENTS)('$path', (document) => {
  it('has no broken links', async () => {
    const relative = linksIn(document).filter((link) => !/^[a-z]+:/.test(link));
    const broken: string[] = [];
    for (const link of relative) {
      const { path, anchor } = linkTarget(document, link);
      if (!exists(path)) broken.push(link);
      else if (anchor && !anchorsIn(await readDocument(path)).includes(anchor)) broken.push(link);
    }
    expect(broken).toEqual([]);
  });

  it('names no file that does not exist', () => {
    const named = [...document.text.matchAll(/`((?:src|tests|deploy)\/[\w./-]+)`/g)].map(
      ([, path = '']) => path,
    );
    expect(named.filter((path) => !exists(path))).toEqual([]);
  });

  it('names no test that does not exist', () => {
    const pattern = /`((?:unit|integration|faults|platform|browser|container|monitoring)\/[\w./-]+)`/g;
    const named = [...document.text.matchAll(pattern)].map(([, name = '']) => `tests/${name}`);
    expect(named.filter((path) => !exists(path) && !exists(`${path}.test.ts`))).toEqual([]);
  });
});

/** Observes a request with every fact that the log and the metrics can have. */
function observeEverything() {
  const { logger, lines } = recordLog();
  const metrics = new Metrics();
  metrics.droppedSpans();
  metrics.watch(new Admission(testSettings(ADDRESSES)));
  const routes = () => [{ method: 'GET', path: '/api/music/models' }];
  const telemetry = new Telemetry({ logger, metrics, routes, quietRoute: '/api/health' });
  telemetry.redisObserver().onUp();
  const request = new Request('http://localhost/api/music/models');
  const exchange = new Exchange(request, null);
  const { record } = exchange;
  record.calls.push({ call: 'models', outcome: 200, ms: 1 });
  Object.assign(record, {
    refresh: 'renewed',
    refreshTokenReused: 'presented',
    oauthError: 'invalid_grant',
    reason: 'upstreamTimeout',
    cause: 'TimeoutError',
    bytes: 1,
    slices: 2,
    clientGone: 'streaming',
    brokenBody: true,
  } satisfies Partial<typeof record>);
  telemetry.observe(exchange, () => new Response());
  return { line: lines[0] ?? {}, registry: metrics.registry };
}

/** Such as `music_gateway_refreshes_total{outcome}`, from the text that Prometheus reads. */
function metricsIn(scrape: string): Set<string> {
  const samples = scrape.matchAll(/^(music_gateway_\w+?)(?:_bucket|_sum|_count)?(?:\{(.*)\})? \S+$/gm);
  return new Set(
    Array.from(samples, ([, name = '', labels = '']) => {
      const names = [...labels.matchAll(/(\w+)="/g)]
        .map(([, label]) => label)
        .filter((label) => label !== 'le');
      return names.length ? `${name}{${names.join(',')}}` : name;
    }),
  );
}

describe('the pages on monitoring', () => {
  it('has a heading for each alert, and for no other', async () => {
    const alerts = (await readAlerts()).map(({ alert }) => alert);
    const headings = section(RUNBOOK, '## Alerts').matchAll(/^### (.+)$/gm);
    expect(alerts.length).toBeGreaterThan(10);
    expect(Array.from(headings, ([, name]) => name)).toEqual(alerts);
  });

  it('explains each field of a line in the log, and no other', () => {
    const explained = namesInTables(section(MONITORING, '## The log')).filter(
      (name) => !LEVELS.includes(name),
    );
    expect(explained.toSorted()).toEqual(Object.keys(observeEverything().line).toSorted());
  });

  it('explains each metric with its labels, and no other', async () => {
    const explained = namesInTables(section(MONITORING, '## Metrics')).filter((name) =>
      name.startsWith('music_'),
    );
    const scraped = metricsIn(await observeEverything().registry.metrics());
    expect(explained.toSorted()).toEqual([...scraped].toSorted());
  });
});

describe('the figures of the benchmark', () => {
  it('are the same in the README', async () => {
    const { text } = await readDocument('tests/bench/results/table.md');
    const row = /^\| this gateway \| (.+)/m.exec(text)?.[1]?.split(' | ') ?? [];
    const [, , call, , , track] = row.map((figure) => figure.split(' ', 1)[0]);
    expect(section(README, '## What it costs')).toContain(
      `A proxied call takes ${call} µs of a core, a track of 10 MB ${track} ms,`,
    );
  });

  it('are shown as they are kept', async () => {
    const results = await readDocument('tests/bench/results/table.md');
    const shown = await readDocument('tests/bench/README.md');
    expect(section(shown, '## What came out')).toContain(section(results, '## CPU time').trim());
  });
});
