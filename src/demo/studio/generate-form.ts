/** The form that orders a track. It reuses the Idempotency-Key when a failed order is sent again unchanged. */

import type { GenerationOrder } from '../../client/generation-order.ts';
import type { Memory } from './browser-memory.ts';
import { keepDraft } from './draft.ts';
import type { TextKey } from './english.ts';
import { createLengthField, createPromptField } from './order-fields.ts';
import { connectSuggestions } from './order-suggestions.ts';
import { part } from './parts.ts';
import type { Model } from './records.ts';
import type { Text } from './text.ts';

/** `refused` means that there is no track, `uncertain` that there may be one. */
export type Outcome = 'done' | 'refused' | 'uncertain';

export interface GenerateForm {
  /** Undefined means that they are not known yet. */
  showModels(models: readonly Model[] | undefined): void;
  /** The credits that are left. Undefined means that they are not known. */
  showBalance(credits: number | undefined): void;
  /** Forgets all that a person has entered and ordered. */
  empty(): void;
}

export interface GenerateFormOptions {
  readonly text: Text;
  /** Gets the same key when the same attempt is repeated. Must not reject, and calls back when the order is accepted. */
  readonly onGenerate: (
    order: GenerationOrder,
    idempotencyKey: string,
    onAccepted: () => void,
  ) => Promise<Outcome>;
  /** Whether an order is to be sent although one of the same text is being sent again. */
  readonly isMeant: (prompt: string) => Promise<boolean>;
  /** Of this tab. */
  readonly tab: Memory;
}

export function createGenerateForm(
  root: HTMLElement,
  { text, onGenerate, isMeant, tab }: GenerateFormOptions,
): GenerateForm {
  const form = part<HTMLFormElement>(root, 'form');
  const model = part<HTMLSelectElement>(root, 'model');
  const generate = part<HTMLButtonElement>(root, 'generate');
  const prompt = createPromptField(root, text);
  const length = createLengthField(root, text);
  connectSuggestions(root, { prompt: part(root, 'prompt'), length: part(root, 'length') });
  const instrumental = part<HTMLInputElement>(root, 'instrumental');
  const isChecked = (name: string) => part<HTMLInputElement>(root, name).checked;
  let balance: number | undefined;
  let models = new Map<string, Model>();
  /** The keys of the orders that have failed, until they are sent again. */
  const failed = new Map<string, { readonly key: string; readonly outcome: Outcome }>();
  /**
   * The prices of the orders that are not accepted yet, which the balance still contains: a double click would pay for a
   * second track. Empty for another account.
   */
  let pending = new Map<string, number>();

  function currentOrder(): GenerationOrder {
    return {
      model: model.value,
      prompt: prompt.value(),
      music_length_ms: length.milliseconds(),
      force_instrumental: isChecked('instrumental'),
      is_public: isChecked('public'),
    };
  }

  /** Tells orders apart, also by the recording that they start from, of which the order itself says nothing. */
  function fingerprintOf(order: GenerationOrder): string {
    const recording = form.querySelector<HTMLInputElement>('[name="recording"]:checked')?.value;
    return JSON.stringify([order, recording]);
  }

  /** If a field is wrong, shows its problem, and gives the focus to the first wrong one. */
  function areFieldsRight(): boolean {
    const wrong = [prompt, length].filter((field) => !field.check());
    wrong[0]?.focus();
    return wrong.length === 0;
  }

  async function submit(): Promise<void> {
    const order = currentOrder();
    const fingerprint = fingerprintOf(order);
    const own = pending;
    if (own.has(fingerprint) || order.model === '' || !areFieldsRight()) return;
    const earlier = failed.get(fingerprint);
    // An uncertain order may be paid for already.
    if (!isAffordable() && earlier?.outcome !== 'uncertain') return length.focus();
    own.set(fingerprint, price());
    showState();
    const settle = () => {
      own.delete(fingerprint);
      showState();
    };
    // Another account may have signed in before the answer.
    if (!(await isMeant(order.prompt)) || own !== pending) return settle();
    const key = earlier?.key ?? crypto.randomUUID();
    failed.delete(fingerprint);
    showState();
    const outcome = await onGenerate(order, key, settle);
    // A refusal says nothing about the first attempt.
    const isLost = own === pending && outcome !== 'done';
    if (isLost) failed.set(fingerprint, { key, outcome: worse(earlier?.outcome, outcome) });
    settle();
  }

  function showState(): void {
    const fingerprint = fingerprintOf(currentOrder());
    const isPending = pending.has(fingerprint);
    form.setAttribute('aria-busy', String(isPending));
    // `disabled` is not used, because the button would lose the keyboard focus.
    generate.setAttribute('aria-disabled', String(isPending || model.value === ''));
    text.write(
      part(root, 'attempt'),
      failed.get(fingerprint)?.outcome === 'uncertain' ? 'sameAttempt' : undefined,
    );
    showPrice();
    const canBeInstrumental = models.get(model.value)?.canBeInstrumental !== false;
    instrumental.disabled = !canBeInstrumental;
    if (!canBeInstrumental) instrumental.checked = false;
    text.write(part(root, 'not-instrumental'), canBeInstrumental ? undefined : 'notInstrumental');
  }

  /** 0 if it is not known. */
  function price(): number {
    const perSecond = models.get(model.value)?.creditsPerSecond ?? 0;
    return length.isRight() ? Math.ceil((perSecond * length.milliseconds()) / 1_000) : 0;
  }

  function reserved(): number {
    return [...pending.values()].reduce((sum, credits) => sum + credits, 0);
  }

  function isAffordable(): boolean {
    return balance === undefined || price() === 0 || price() <= balance - reserved();
  }

  function showPrice(): void {
    const shown = part(root, 'price');
    const credits = price();
    // One that is being sent is among what is reserved.
    const isWithin = isAffordable() || pending.has(fingerprintOf(currentOrder()));
    shown.dataset['state'] = isWithin ? 'within' : 'over';
    if (isWithin) text.write(shown, credits > 0 ? 'price' : undefined, { credits });
    else
      text.write(shown, tooLittle(balance, reserved()), {
        credits,
        balance: balance ?? 0,
        reserved: reserved(),
      });
  }

  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void submit();
  });
  form.addEventListener('input', showState);
  // The first order may be accepted before the second click of a double click, or while Enter is held down.
  generate.addEventListener('click', (event) => {
    if (event.detail > 1) event.preventDefault();
  });
  form.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey) && !event.repeat) {
      event.preventDefault();
      form.requestSubmit();
    }
    const isTyped = event.target === part(root, 'prompt');
    if (event.key === 'Enter' && event.repeat && !isTyped) event.preventDefault();
  });
  keepDraft(form, tab);
  showState();

  return {
    showModels(known) {
      const chosen = model.value;
      models = new Map(known?.map((each) => [each.id, each]));
      const options = (known ?? []).map(({ id, name }) => option(id, name));
      if (options.length === 0) {
        const empty = option('', '');
        text.write(empty, known ? 'noModels' : 'modelsLoading');
        options.push(empty);
      }
      model.replaceChildren(...options);
      if (models.has(chosen)) model.value = chosen;
      showState();
    },
    showBalance(credits) {
      balance = credits;
      showPrice();
    },
    empty() {
      pending = new Map();
      failed.clear();
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
function tooLittle(balance: number | undefined, reserved: number): TextKey {
  if (reserved > 0) return 'tooExpensiveNow';
  return balance === 0 ? 'nothingLeft' : 'tooExpensive';
}

function worse(earlier: Outcome | undefined, outcome: Outcome): Outcome {
  return earlier === 'uncertain' ? earlier : outcome;
}
