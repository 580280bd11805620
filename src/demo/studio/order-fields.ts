/** The two fields of an order that a person can fill in wrongly. They check their values and show problems. */

import type { TextKey } from './english.ts';
import type { Values } from './formats.ts';
import { part } from './parts.ts';
import type { Creation } from './records.ts';
import type { Text } from './text.ts';

export interface Field {
  /** Shows the problem, if there is one. Returns whether the value is right. */
  check(): boolean;
  focus(): void;
}

export interface PromptField extends Field {
  value(): string;
  /** Empties the field, and shows no problem about it. */
  clear(): void;
}

export interface LengthField extends Field {
  isRight(): boolean;
  milliseconds(): number;
}

/** The gateway counts UTF-16 code units of the trimmed prompt. */
export const PROMPT_LIMIT = 4_100;
export const LENGTH_LIMITS = { least: 3, most: 600 } as const;

interface Problem {
  readonly key: TextKey;
  readonly values?: Values;
}

export function createPromptField(root: HTMLElement, text: Text): PromptField {
  const input = part<HTMLTextAreaElement>(root, 'prompt');
  const counter = part(root, 'prompt-count');
  const problem = part(root, 'prompt-problem');
  const value = () => input.value.trim();
  const count = () => {
    text.write(counter, 'promptCount', { used: value().length, limit: PROMPT_LIMIT });
    counter.dataset['state'] = value().length > PROMPT_LIMIT ? 'over' : 'within';
  };
  input.addEventListener('input', count);
  count();
  return {
    value,
    clear() {
      input.value = '';
      input.removeAttribute('aria-invalid');
      text.write(problem, undefined);
      count();
    },
    ...checked(input, problem, text, () => {
      if (value() === '') return { key: 'promptMissing' };
      if (value().length > PROMPT_LIMIT) return { key: 'promptTooLong', values: { limit: PROMPT_LIMIT } };
      return undefined;
    }),
  };
}

export function createLengthField(root: HTMLElement, text: Text): LengthField {
  const input = part<HTMLInputElement>(root, 'length');
  const { least, most } = LENGTH_LIMITS;
  const isRight = () => {
    const seconds = Number(input.value);
    return Number.isInteger(seconds) && seconds >= least && seconds <= most;
  };
  return {
    isRight,
    milliseconds: () => Number(input.value) * 1_000,
    ...checked(input, part(root, 'length-problem'), text, () =>
      isRight() ? undefined : { key: 'lengthWrong', values: LENGTH_LIMITS },
    ),
  };
}

/** Fills in the order of an earlier track, as far as it is known, for the person to change and to send. */
export function fillOrder(
  root: HTMLElement,
  { prompt, model, seconds, isInstrumental, isPublic }: Creation,
): void {
  const models = part<HTMLSelectElement>(root, 'model');
  if ([...models.options].some(({ value }) => value === model)) models.value = model;
  part<HTMLInputElement>(root, 'instrumental').checked = isInstrumental;
  part<HTMLInputElement>(root, 'public').checked = isPublic;
  if (seconds > 0) enter(part<HTMLInputElement>(root, 'length'), String(Math.round(seconds)));
  const input = part<HTMLTextAreaElement>(root, 'prompt');
  enter(input, prompt);
  input.focus();
}

/** Counter, price and problems follow the event of a field. */
export function enter(field: HTMLTextAreaElement | HTMLInputElement, value: string): void {
  field.value = value;
  const { defaultView: window } = field.ownerDocument;
  if (window) field.dispatchEvent(new window.Event('input', { bubbles: true }));
}

/** Input only updates a problem that is already shown; `check` shows a new one. */
function checked(
  input: HTMLInputElement | HTMLTextAreaElement,
  message: HTMLElement,
  text: Text,
  findProblem: () => Problem | undefined,
): Field {
  const check = () => {
    const problem = findProblem();
    text.write(message, problem?.key, problem?.values);
    input.setAttribute('aria-invalid', String(problem !== undefined));
    return problem === undefined;
  };
  input.addEventListener('input', () => {
    if (input.getAttribute('aria-invalid') === 'true') check();
  });
  return {
    check,
    focus() {
      // What is folded away cannot have the focus.
      input.closest('details')?.setAttribute('open', '');
      input.focus();
    },
  };
}
