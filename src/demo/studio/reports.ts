/** Reports failures to the person: in the notice, or by ending the session. */

import { type Doing, describeFailure, isSessionEnd } from './failure.ts';
import type { Message, Notice } from './notice.ts';

export interface Reports {
  /** @param order the prompt of the order that has failed: the form may hold another one by then */
  report(error: unknown, doing: Doing, order?: string): void;
  /** What to show in another place than the notice. Undefined if the session has ended, which the page shows then. */
  describe(error: unknown, doing: Doing): Message | undefined;
  /** Runs an action that a person started, and reports its failure. */
  attempt(action: () => Promise<void>, doing?: Doing): Promise<void>;
}

export interface ReportsOptions {
  readonly notice: Notice;
  readonly onSessionEnd: () => void;
}

export function createReports({ notice, onSessionEnd }: ReportsOptions): Reports {
  function describe(error: unknown, doing: Doing): Message | undefined {
    if (!isSessionEnd(error, doing)) return describeFailure(error, doing, navigator.onLine);
    onSessionEnd();
    return undefined;
  }

  function report(error: unknown, doing: Doing, order?: string): void {
    const described = describe(error, doing);
    if (!described) return;
    const said = [order && `“${order}”`, described.said].filter(Boolean).join(': ');
    const message = { ...described, said };
    const isPassing = doing === 'loading' || ['offline', 'unreachable'].includes(message.advice);
    if (isPassing) notice.showPassing(message);
    else notice.show(message);
  }

  return {
    report,
    describe,
    async attempt(action, doing = 'changing') {
      try {
        await action();
      } catch (error) {
        report(error, doing);
      }
    },
  };
}
