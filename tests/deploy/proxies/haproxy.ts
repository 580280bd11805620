/** The HAProxy of `deploy/two-instances`, as its operator sees and commands it. */

import { fileURLToPath } from 'node:url';
import { runToEnd } from '../../support/run-to-end.ts';

const ADMIN = fileURLToPath(new URL('../../../deploy/two-instances/admin.sh', import.meta.url));

/** @param environment with ADMIN_SOCKET, and a PATH on which Bun is */
export async function commandHaproxy(line: string, environment: Readonly<Record<string, string>>) {
  const { output, errors } = await runToEnd(['sh', ADMIN, line], { environment });
  if (output.trim() || errors) throw new Error(`HAProxy refused: ${output}${errors}`);
}

/** What HAProxy's statistics say of each gateway. */
export async function readStatistics(address: string) {
  const [head = '', ...rows] = (await (await fetch(`${address};csv`)).text()).split('\n');
  const columns = head.replace('# ', '').split(',');
  return rows
    .map((row) => row.split(','))
    .filter((row) => row[0] === 'gateways' && row[1] !== 'BACKEND')
    .map((row) => {
      const value = (column: string) => row[columns.indexOf(column)] ?? '';
      return {
        name: value('svname'),
        /** UP; DRAIN: healthy, but gets no new requests; DOWN or MAINT. */
        status: value('status'),
        /** Requests that are under way at it. */
        underWay: Number(value('scur')),
        /** Requests whose response had a status from 200 to 299. */
        served: Number(value('hrsp_2xx')),
      };
    });
}
