/** Reports failures to the person: in the notice, or by ending the session. */

import { type Doing, describeFailure, isSessionEnd } from './failure.ts';
import type { Notice } from './notice.ts';

export interface Reports {
  report(error: unknown, doing: Doing): void;
  /** Runs an action that a person started, and reports its failure. */
  attempt(action: () => Promise<void>, doing?: Doing): Promise<void>;
}

export interface ReportsOptions {
  readonly notice: Notice;
  readonly onSessionEnd: () => void;
}

export function createReports({ notice, onSessionEnd }: ReportsOptions): Reports {
  function report(error: unknown, doing: Doing): void {
    const message = describeFailure(error, doing, navigator.onLine);
    const isPassing = doing === 'loading' || ['offline', 'unreachable'].includes(message.advice);
    if (isSessionEnd(error, doing)) onSessionEnd();
    else if (isPassing) notice.showPassing(message);
    else notice.show(message);
  }

  return {
    report,
    async attempt(action, doing = 'changing') {
      try {
        await action();
      } catch (error) {
        report(error, doing);
      }
    },
  };
}
