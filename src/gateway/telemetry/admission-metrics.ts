/** Exports what is admitted and refused to Prometheus: counted where it happens, and read at each scrape. */

import { Counter, Gauge, type Registry } from 'prom-client';
import type { Admission } from '../http/admission/admission.ts';

/** @param prefix begins the names of the metrics */
export function measureAdmission(admission: Admission, registry: Registry, prefix: string): void {
  const {
    identityProvider,
    sessions,
    signOuts,
    reads,
    streams,
    ledger,
    perSession,
    requestBodies,
    memoryLimitBytes,
  } = admission;
  const pools = {
    identity_provider: identityProvider,
    session: sessions,
    sign_out: signOuts,
    read: reads,
    stream: streams,
    memory: ledger,
  };
  const refusing = { ...pools, one_session: perSession, request_body: requestBodies };
  const registers = [registry];
  const named = (name: string, help: string) => ({ name: prefix + name, help, registers });

  new Gauge({
    ...named('places_in_use', 'Calls in flight, and the bytes of memory that are reserved.'),
    labelNames: ['pool'],
    collect() {
      for (const [pool, { inUse }] of Object.entries(pools)) this.set({ pool }, inUse);
    },
  });
  const limits = new Gauge({ ...named('places_limit', 'How many there may be.'), labelNames: ['pool'] });
  for (const [pool, { limit }] of Object.entries(pools)) limits.set({ pool }, limit);
  new Counter({
    ...named('refused_total', 'Calls and bodies that were refused because there was no room.'),
    labelNames: ['pool'],
    collect() {
      this.reset();
      for (const [pool, { refused }] of Object.entries(refusing)) this.inc({ pool }, refused);
    },
  });
  new Gauge({
    ...named('memory_promised_bytes', 'What all that is admitted may cost at most.'),
    collect() {
      // What is not in the ledger is the process itself.
      this.set(memoryLimitBytes - ledger.limit + ledger.inUse);
    },
  });
  new Gauge({ ...named('memory_limit_bytes', 'What the process may use.') }).set(memoryLimitBytes);
}
