/** The form that orders a track. It reuses the Idempotency-Key when a failed order is sent again unchanged. */

import type { GenerationOrder } from '../../client/generation.ts';
import type { TextKey } from './english.ts';
import { createLengthField, createPromptField } from './order-fields.ts';
import { connectSuggestions } from './order-suggestions.ts';
import { part } from './parts.ts';
import type { Model } from './records.ts';
import type { Text } from './text.ts';

/** `refused` means that there is no track, `uncertain` that there may be one. */
export type Outcome = 'done' | 'refused' | 'uncertain';

/** The reason of the signal of an order whose account is not signed in any more. */
export const ACCOUNT_GONE = Symbol('account gone');

export interface GenerateForm {
  /** Undefined means that they are not known yet. */
  showModels(models: readonly Model[] | undefined): void;
  /** The credits that are left. Undefined means that they are not known. */
  showBalance(credits: number | undefined): void;
  /** Forgets all that a person has entered, and aborts the order in flight with {@link ACCOUNT_GONE}. */
  empty(): void;
}

export interface GenerateFormOptions {
  readonly text: Text;
  /** Gets the same key when the same attempt is repeated. Must not reject. */
  readonly onGenerate: (
    order: GenerationOrder,
    idempotencyKey: string,
    signal: AbortSignal,
  ) => Promise<Outcome>;
}

export function createGenerateForm(
  root: HTMLElement,
  { text, onGenerate }: GenerateFormOptions,
): GenerateForm {
  const form = part<HTMLFormElement>(root, 'form');
  const model = part<HTMLSelectElement>(root, 'model');
  const generate = part<HTMLButtonElement>(root, 'generate');
  const cancel = part<HTMLButtonElement>(root, 'cancel');
  const prompt = createPromptField(root, text);
  const length = createLengthField(root, text);
  connectSuggestions(root, { prompt: part(root, 'prompt'), length: part(root, 'length') });
  const isChecked = (name: string) => part<HTMLInputElement>(root, name).checked;
  let balance: number | undefined;
  let prices = new Map<string, number | undefined>();
  let failed: { readonly order: string; readonly key: string; readonly outcome: Outcome } | undefined;
  let underWay: AbortController | undefined;

  /** Undefined if a field is wrong. Then its problem is shown, and the first wrong field has the focus. */
  function readOrder(): GenerationOrder | undefined {
    const wrong = [prompt, length].filter((field) => !field.check());
    wrong[0]?.focus();
    if (wrong.length > 0) return undefined;
    return {
      model: model.value,
      prompt: prompt.value(),
      music_length_ms: length.milliseconds(),
      force_instrumental: isChecked('instrumental'),
      is_public: isChecked('public'),
    };
  }

  async function submit(): Promise<void> {
    if (underWay || model.value === '') return;
    const order = readOrder();
    if (!order) return;
    const fingerprint = JSON.stringify(order);
    const earlier = failed?.order === fingerprint ? failed : undefined;
    const key = earlier?.key ?? crypto.randomUUID();
    failed = undefined;
    const attempt = new AbortController();
    underWay = attempt;
    showState();
    const outcome = await onGenerate(order, key, attempt.signal);
    // It was given up for another account's, which may have its own order in flight by now.
    if (underWay !== attempt) return;
    underWay = undefined;
    // A refusal says nothing about the first attempt.
    if (outcome !== 'done') failed = { order: fingerprint, key, outcome: worse(earlier?.outcome, outcome) };
    showState();
  }

  function showState(): void {
    if (!underWay && root.ownerDocument.activeElement === cancel) generate.focus();
    form.setAttribute('aria-busy', String(underWay !== undefined));
    // `disabled` is not used, because the button would lose the keyboard focus.
    generate.setAttribute('aria-disabled', String(underWay !== undefined || model.value === ''));
    cancel.hidden = underWay === undefined;
    text.write(part(root, 'attempt'), failed?.outcome === 'uncertain' ? 'sameAttempt' : undefined);
    showPrice();
  }

  function showPrice(): void {
    const perSecond = prices.get(model.value);
    const isKnown = perSecond !== undefined && length.isRight();
    const credits = isKnown ? Math.ceil((perSecond * length.milliseconds()) / 1_000) : 0;
    const isAffordable = balance === undefined || credits <= balance;
    const price = part(root, 'price');
    price.dataset['state'] = isAffordable ? 'within' : 'over';
    if (isAffordable) text.write(price, isKnown ? 'price' : undefined, { credits });
    else text.write(price, tooLittle(balance), { credits, balance: balance ?? 0 });
  }

  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void submit();
  });
  form.addEventListener('input', showPrice);
  cancel.addEventListener('click', () => underWay?.abort());
  showState();

  return {
    showModels(models) {
      const chosen = model.value;
      prices = new Map(models?.map(({ id, creditsPerSecond }) => [id, creditsPerSecond]));
      const options = (models ?? []).map(({ id, name }) => option(id, name));
      if (options.length === 0) {
        const empty = option('', '');
        text.write(empty, models ? 'noModels' : 'modelsLoading');
        options.push(empty);
      }
      model.replaceChildren(...options);
      if (prices.has(chosen)) model.value = chosen;
      showState();
    },
    showBalance(credits) {
      balance = credits;
      showPrice();
    },
    empty() {
      underWay?.abort(ACCOUNT_GONE);
      underWay = undefined;
      failed = undefined;
      form.reset();
      prompt.clear();
      showState();
    },
  };

  function option(value: string, name: string): HTMLOptionElement {
    const element = root.ownerDocument.createElement('option');
    element.value = value;
    element.textContent = name;
    return element;
  }
}

/** Without credits no other choice helps. */
function tooLittle(balance: number | undefined): TextKey {
  return balance === 0 ? 'nothingLeft' : 'tooExpensive';
}

function worse(earlier: Outcome | undefined, outcome: Outcome): Outcome {
  return earlier === 'uncertain' ? earlier : outcome;
}
