/** Shows that something did not work, and what to do next. The page has one notice. */

import type { TextKey } from './english.ts';
import type { Values } from './formats.ts';
import { part } from './parts.ts';
import { runOnce } from './run-once.ts';
import type { Text } from './text.ts';

export interface Message {
  /** What happened, in the words of the gateway or the upstream. */
  readonly said?: string;
  /** What to do next. */
  readonly advice: TextKey;
  readonly values?: Values;
}

export interface Notice {
  show(message: Message): void;
  /** Shows a problem that may resolve itself. It does not replace a message from `show`. */
  showPassing(message: Message): void;
  /** Clears a message from `show`. */
  clearLasting(): void;
  /** @param only clears this message alone */
  clearPassing(only?: TextKey): void;
}

export interface NoticeOptions {
  readonly text: Text;
  /** Called when a person does not want to wait until a problem resolves itself. Must not reject. */
  readonly onTryNow: () => Promise<void>;
}

export function createNotice(root: HTMLElement, { text, onTryNow }: NoticeOptions): Notice {
  const alert = part(root, 'alert');
  const tryNow = part(root, 'try-now');
  let shown: 'nothing' | 'passing' | 'lasting' = 'nothing';
  let shownAdvice: TextKey | undefined;

  function put(next: typeof shown, { said = '', advice, values }: Partial<Message>): void {
    shown = next;
    shownAdvice = advice;
    root.hidden = next === 'nothing';
    tryNow.hidden = next !== 'passing';
    part(alert, 'said').textContent = said;
    text.write(part(alert, 'advice'), advice, values);
  }

  const clear = () => put('nothing', {});
  tryNow.addEventListener('click', () => void runOnce(tryNow, onTryNow));
  part(root, 'dismiss').addEventListener('click', clear);
  return {
    show: (message) => put('lasting', message),
    showPassing(message) {
      if (shown !== 'lasting') put('passing', message);
    },
    clearLasting() {
      if (shown === 'lasting') clear();
    },
    clearPassing(only = shownAdvice) {
      if (shown === 'passing' && shownAdvice === only) clear();
    },
  };
}
