/** Keeps what a person has entered for an order through a reload of the page. */

import type { Memory } from './browser-memory.ts';
import { enter } from './order-fields.ts';
import { part } from './parts.ts';

const KEY = 'studio.draft';
const FIELDS = ['prompt', 'length'];
const CHECKS = ['instrumental', 'public'];

/** Fills the fields with the draft, and keeps each change. @param tab its memory, because two tabs may order two tracks */
export function keepDraft(form: HTMLElement, tab: Memory): void {
  const field = (name: string) => part<HTMLInputElement>(form, name);
  const draft = new Map<string, unknown>(Object.entries(JSON.parse(tab.getItem(KEY) ?? '{}')));
  for (const name of FIELDS) {
    const value = draft.get(name);
    if (typeof value === 'string') enter(field(name), value);
  }
  for (const name of CHECKS) field(name).checked = draft.get(name) === true;
  const save = () => {
    const values = FIELDS.map((name) => [name, field(name).value]);
    const checks = CHECKS.map((name) => [name, field(name).checked]);
    tab.setItem(KEY, JSON.stringify(Object.fromEntries([...values, ...checks])));
  };
  form.addEventListener('input', save);
  form.addEventListener('reset', () => tab.removeItem(KEY));
}
