/** Checks whether the gateway could listen on its ports. */

import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { listenOrExplain } from '../gateway/http/listen.ts';
import type { Settings } from '../gateway/settings/settings.ts';
import { isSuccess, jsonOf } from '../gateway/upstream/upstream-response.ts';
import type { Finding } from './finding.ts';
import { type Probed, probe } from './http-probe.ts';

const Health = Type.Object({ service: Type.String(), status: Type.Literal('ok') });

export async function checkPorts(settings: Settings): Promise<Finding[]> {
  const { host, port, metricsHost, metricsPort } = settings;
  const isHealth = (probed: Probed) => !('problem' in probed) && Value.Check(Health, jsonOf(probed.response));
  const isMetrics = (probed: Probed) => !('problem' in probed) && isSuccess(probed.response);
  const main = checkPort('', port, host, '/api/health', isHealth);
  if (metricsPort === undefined) return [await main];
  return Promise.all([main, checkPort('METRICS_', metricsPort, metricsHost, '/metrics', isMetrics)]);
}

async function checkPort(
  prefix: string,
  port: number,
  host: string,
  path: string,
  isOurs: (probed: Probed) => boolean,
): Promise<Finding> {
  const problem = await listenOrExplain(prefix, port, host, (address) =>
    Bun.serve({ ...address, reusePort: false, fetch: () => new Response() }).stop(true),
  );
  if (problem === undefined) return { level: 'ok', text: `${prefix}PORT: port ${port} of ${host} is free` };
  // These stand for every address of the machine.
  const reached = host === '0.0.0.0' || host === '::' ? 'localhost' : host.includes(':') ? `[${host}]` : host;
  if (isOurs(await probe('proxy', `http://${reached}:${port}${path}`))) {
    return { level: 'ok', text: `${prefix}PORT: a gateway listens on port ${port} already` };
  }
  return { level: 'error', text: problem };
}
