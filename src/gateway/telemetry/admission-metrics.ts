/** Exports what is admitted and refused to Prometheus: counted where it happens, and read at each scrape. */

import { Counter, Gauge, type Registry } from 'prom-client';
import type { Admission } from '../http/admission/admission.ts';

/** @param prefix begins the names of the metrics */
export function measureAdmission(admission: Admission, registry: Registry, prefix: string): void {
  const { ledger, memoryLimitBytes } = admission;
  const pools = Object.entries({
    identity_provider: admission.identityProvider,
    session: admission.sessions,
    sign_out: admission.signOuts,
    read: admission.reads,
    stream: admission.streams,
    memory: ledger,
  });
  const refusing = [
    ...pools,
    ['one_session', admission.perSession],
    ['request_body', admission.requestBodies],
  ] as const;
  const named = (name: string, help: string) => ({ name: prefix + name, help, registers: [registry] });

  new Gauge({
    ...named('places_in_use', 'Calls in flight, and the bytes of memory that are reserved.'),
    labelNames: ['pool'],
    collect() {
      for (const [pool, { inUse }] of pools) this.set({ pool }, inUse);
    },
  });
  const limits = new Gauge({ ...named('places_limit', 'How many there may be.'), labelNames: ['pool'] });
  for (const [pool, { limit }] of pools) limits.set({ pool }, limit);
  new Counter({
    ...named('refused_total', 'Calls and bodies that were refused because there was no room.'),
    labelNames: ['pool'],
    collect() {
      this.reset();
      for (const [pool, { refused }] of refusing) this.inc({ pool }, refused);
    },
  });
  new Gauge({
    ...named('memory_promised_bytes', 'What everything currently admitted may use at most.'),
    collect() {
      // What is not in the ledger is the process itself.
      this.set(memoryLimitBytes - ledger.limit + ledger.inUse);
    },
  });
  new Gauge(named('memory_limit_bytes', 'What the process may use.')).set(memoryLimitBytes);
}
