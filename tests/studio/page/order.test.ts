import { describe, expect, it, mock } from 'bun:test';
import type { GenerationOrder } from '../../../src/client/generation-order.ts';
import { type Memory, openMemory } from '../../../src/demo/studio/browser-memory.ts';
import { english } from '../../../src/demo/studio/english.ts';
import { createGenerateForm, type Outcome } from '../../../src/demo/studio/generate-form.ts';
import { enter, fillOrder } from '../../../src/demo/studio/order-fields.ts';
import { part } from '../../../src/demo/studio/parts.ts';
import { readCreation } from '../../../src/demo/studio/records.ts';
import { settle } from '../../client/fake-time.ts';
import { fire, openPart, viewOf } from './page.ts';

const MODELS = [
  { id: 'music-1', name: 'One', creditsPerSecond: 0.5, canBeInstrumental: true },
  { id: 'music-2', name: 'Two', creditsPerSecond: undefined, canBeInstrumental: true },
  { id: 'music-3', name: 'Three', creditsPerSecond: undefined, canBeInstrumental: false },
];
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The form with models and a prompt. The test ends each attempt to generate. */
function openForm(tab?: Memory) {
  const { document, storage, root, text, shown } = openPart('order');
  const isMeant = mock(async (_prompt: string) => true);
  let outcome = Promise.withResolvers<Outcome>();
  const onGenerate = mock(
    (_order: GenerationOrder, _key: string, _onAccepted: () => void) => outcome.promise,
  );
  const form = createGenerateForm(root, { text, onGenerate, isMeant, tab: tab ?? storage });
  const generate = part(root, 'generate');
  const prompt = part<HTMLTextAreaElement>(root, 'prompt');
  const length = part<HTMLInputElement>(root, 'length');
  const checks = [part<HTMLInputElement>(root, 'instrumental'), part<HTMLInputElement>(root, 'public')];
  const draft = [prompt.value, length.value, ...checks.map(({ checked }) => checked)];
  form.showModels(MODELS);
  enter(prompt, ' Rain ');
  return {
    ...{ root, text, form, prompt, length, checks, draft, shown, isMeant },
    model: part<HTMLSelectElement>(root, 'model'),
    keys: () => onGenerate.mock.calls.map(([, key]) => key),
    isReady: () => generate.getAttribute('aria-disabled') === 'false',
    focused: () => document.activeElement?.getAttribute('data-part'),
    async press(times = 1) {
      outcome = Promise.withResolvers();
      for (let time = 0; time < times; time++) generate.click();
      await settle();
      const [order, key, accept = () => {}] = onGenerate.mock.lastCall ?? [];
      return { order, key, accept };
    },
    end(reached: Outcome) {
      outcome.resolve(reached);
      return settle();
    },
  };
}

describe('an order', () => {
  it('is what the form holds, with the chosen model after they are loaded again, or none without one', async () => {
    const { root, form, length, model, press, isReady, keys } = openForm();
    for (const models of [undefined, []]) {
      form.showModels(models);
      await press();
      expect([isReady(), keys()]).toEqual([false, []]);
    }
    form.showModels(MODELS);
    expect(isReady()).toBe(true);
    model.value = 'music-2';
    form.showModels(MODELS.toReversed());
    enter(length, '45');
    part(root, 'instrumental').click();
    const fields = { model: 'music-2', prompt: 'Rain', music_length_ms: 45_000 };
    const order = { ...fields, force_instrumental: true, is_public: false };
    expect(await press()).toMatchObject({ order, key: expect.stringMatching(UUID) });
  });

  it('is not instrumental where the model always sings', async () => {
    const { model, checks, shown, press } = openForm();
    checks[0]?.click();
    for (const [name, isOff] of Object.entries({ 'music-3': true, 'music-2': false })) {
      model.value = name;
      fire(model, 'input');
      expect([checks[0]?.disabled, checks[0]?.checked]).toEqual([isOff, false]);
      expect(shown('not-instrumental')).toBe(isOff ? english.notInstrumental : '');
    }
    expect((await press()).order?.force_instrumental).toBe(false);
  });

  it('survives a reload as a draft, until the account leaves', () => {
    const tab = openMemory(() => {
      throw new Error('blocked');
    });
    const { draft: untouched, form, length, checks } = openForm(tab);
    enter(length, '45');
    checks[1]?.click();
    expect(openForm(tab).draft).toEqual([' Rain ', '45', false, true]);
    form.empty();
    expect(openForm(tab).draft).toEqual(untouched);
  });

  it('is not sent while a field is wrong, whose first has the focus', async () => {
    const { prompt, length, press, focused } = openForm();
    enter(length, '601');
    enter(prompt, ' ');
    expect([(await press()).order, focused()]).toEqual([undefined, 'prompt']);
  });
});

describe('the attempts to order', () => {
  /** Goes through steps, and returns a letter for the key of each order, and what the form says then. */
  async function attempt(steps: string) {
    const { root, form, prompt, isMeant, press, end, keys, isReady, shown } = openForm();
    const { KeyboardEvent, MouseEvent } = viewOf(root.ownerDocument);
    let accept = () => {};
    const answer = Promise.withResolvers<boolean>();
    const strike = (init: KeyboardEventInit) => {
      prompt.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, ...init }));
      return settle();
    };
    const resolve = (isMeant: boolean) => {
      answer.resolve(isMeant);
      return settle();
    };
    const actions: Record<string, () => unknown> = {
      press: async () => {
        ({ accept } = await press());
      },
      'double-click': () => press(2),
      'second-click': () => {
        const second = new MouseEvent('click', { detail: 2, bubbles: true, cancelable: true });
        part(root, 'generate').dispatchEvent(second);
        return settle();
      },
      'ctrl-enter': () => strike({ ctrlKey: true }),
      'command-enter': () => strike({ metaKey: true }),
      'held-ctrl-enter': () => strike({ ctrlKey: true, repeat: true }),
      ask: () => isMeant.mockReturnValueOnce(answer.promise),
      yes: () => resolve(true),
      no: () => resolve(false),
      accept: () => accept(),
      Rain: () => enter(prompt, 'Rain'),
      Snow: () => enter(prompt, 'Snow'),
      public: () => part(root, 'public').click(),
      done: () => end('done'),
      refused: () => end('refused'),
      uncertain: () => end('uncertain'),
      leave() {
        form.empty();
        form.showModels(MODELS);
        enter(prompt, 'Rain');
      },
    };
    for (const step of steps.split(' ')) {
      const act = actions[step];
      if (!act) throw new Error(`There is no step “${step}”`);
      await act();
    }
    const letters = keys().map((key) => 'ABCD'[[...new Set(keys())].indexOf(key)]);
    const hint = shown('attempt').replace(english.sameAttempt, 'same');
    return [...letters, isReady() ? 'ready' : 'sending', hint].join(' ').trim();
  }

  it.each([
    ['a double click sends one', 'double-click', 'A sending'],
    ['its second click sends none, once the first is accepted', 'press accept second-click', 'A ready'],
    ['the keyboard does it too', 'ctrl-enter', 'A sending'],
    ['that of a Mac as well', 'command-enter', 'A sending'],
    ['a key that is held down does not', 'held-ctrl-enter', 'ready'],
    ['what has to be asked first is not sent meanwhile', 'ask press press', 'sending'],
    ['and then sent', 'ask press yes', 'A sending'],
    ['or not', 'ask press no', 'ready'],
    ['and not for another account', 'ask press leave yes', 'ready'],
    ['another order is sent at once', 'press Snow', 'A ready'],
    ['each order is sent once', 'press Snow press Rain press', 'A B sending'],
    ['it is sent again once it is accepted', 'press accept press', 'A B sending'],
    ['it is sent again under a new key when it is done', 'press done press', 'A B sending'],
    ['a refused order keeps its key', 'press refused Snow Rain press refused press', 'A A A sending'],
    ['nothing is said of a refused one', 'press refused', 'A ready'],
    ['an uncertain order keeps its key', 'press uncertain Snow Rain press', 'A A sending'],
    ['it is said of an uncertain one', 'press uncertain', 'A ready same'],
    ['an uncertain order stays so when it is refused', 'press uncertain press refused', 'A A ready same'],
    ['a repeated one that is done is over', 'press uncertain press done press', 'A A B sending'],
    ['another order has another key', 'press uncertain public press', 'A B sending'],
    ['and the first after that', 'press uncertain Snow press uncertain Rain press', 'A B C sending'],
    ['another account may order the same', 'press leave', 'A ready'],
    ['another account has other keys', 'press leave uncertain press', 'A B sending'],
  ])('%s: %s', async (_, steps, outcome) => {
    expect(await attempt(steps)).toBe(outcome);
  });
});

describe('the fields of an order', () => {
  it('are filled in by suggestions, and with what is known of an earlier order', async () => {
    const { root, prompt, shown, press, end, focused } = openForm();
    root.querySelector<HTMLElement>('[data-seconds="120"]')?.click();
    enter(prompt, '');
    await press();
    root.querySelector<HTMLElement>('[data-example]')?.click();
    const state = () => [prompt.value, shown('prompt-problem'), shown('price'), focused()];
    expect(state()).toEqual([english.exampleRain, '', 'Costs 60 credits', 'prompt']);
    const order = { prompt: 'Snow', model: 'music-2', music_length_ms: 7_000, force_instrumental: true };
    fillOrder(root, readCreation({ ...order, is_public: true }));
    expect(state()).toEqual(['Snow', '', '', 'prompt']);
    expect((await press()).order).toEqual({ ...order, is_public: true });
    await end('done');
    fillOrder(root, readCreation({ prompt: 'Hail', model: 'gone' }));
    const unset = { prompt: 'Hail', force_instrumental: false, is_public: false };
    expect((await press()).order).toEqual({ ...order, ...unset });
  });

  const LENGTH = 'Choose a whole number of seconds from 3 to 600.';
  it.each([
    ['prompt', ' \n\t ', 'Describe the music first.', '0/4100'],
    ['prompt', ' rain\n on a roof ', '', '15/4100'],
    ['prompt', ` ${'x'.repeat(4_100)} `, '', '4100/4100'],
    ['prompt', `${'🎵'.repeat(2_050)}x`, 'Use at most 4,100 characters.', '4101/4100'],
    ['length', '2', LENGTH, '4/4100'],
    ['length', '3', '', '4/4100'],
    ['length', '600', '', '4/4100'],
    ['length', '601', LENGTH, '4/4100'],
    ['length', '', LENGTH, '4/4100'],
    ['length', '3.5', LENGTH, '4/4100'],
  ])('judge the %s as the gateway does, once it is sent (%#)', async (name, value, problem, count) => {
    const { root, shown, press, focused } = openForm();
    const field = part<HTMLInputElement>(root, name);
    const judged = () => [shown(`${name}-problem`), field.getAttribute('aria-invalid') === 'true'];
    enter(field, value);
    expect([shown('prompt-count'), ...judged()]).toEqual([count, '', false]);
    expect(part(root, 'prompt-count').dataset['state']).toBe(count.startsWith('4101') ? 'over' : 'within');
    const { prompt, music_length_ms } = (await press()).order ?? {};
    const sent = name === 'prompt' ? prompt : music_length_ms && `${music_length_ms / 1_000}`;
    expect([sent, ...judged()]).toEqual([problem ? undefined : value.trim(), problem, problem !== '']);
    expect(focused()).toBe(problem ? name : null);
    enter(field, '30');
    expect(judged()).toEqual(['', false]);
  });
});

describe('the price', () => {
  const ONE = 'music-1';
  it.each([
    [ONE, '30', 15, 'Costs 15 credits'],
    [ONE, '31', 16, 'Costs 16 credits'],
    [ONE, '31', 15, 'Costs 16 credits, and you have 15: choose a shorter length or a cheaper model.'],
    // No length and no model would help.
    [ONE, '31', 0, 'Costs 16 credits, and you have none left.'],
    [ONE, '601', 15, ''],
    ['music-2', '30', 15, ''],
  ])('of %s for %s seconds is shown to an account with %d credits, which may order: %j', async (...row) => {
    const [name, seconds, balance, price] = row;
    const { form, length, model, shown, press } = openForm();
    model.value = name;
    form.showBalance(balance);
    enter(length, seconds);
    expect(shown('price')).toBe(price);
    // Only the upstream knows for sure whether it is enough.
    expect((await press()).order === undefined).toBe(seconds === '601');
  });
});
