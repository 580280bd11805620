/** The form of an order, in the Studio's page without its script. */

import { expect, it, mock } from 'bun:test';
import type { GenerationOrder } from '../../../src/client/generation-order.ts';
import { english } from '../../../src/demo/studio/english.ts';
import { createGenerateForm, type Outcome } from '../../../src/demo/studio/generate-form.ts';
import { enter } from '../../../src/demo/studio/order-fields.ts';
import { fromTemplate, part } from '../../../src/demo/studio/parts.ts';
import { settle } from '../../client/fake-time.ts';
import { openPage } from './open-page.ts';

const MODELS = [
  { id: 'music-1', name: 'One', creditsPerSecond: 0.5, canBeInstrumental: true },
  { id: 'music-2', name: 'Two', creditsPerSecond: undefined, canBeInstrumental: true },
];
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The form with models and a prompt. The test ends each attempt to generate. */
function openForm() {
  const { window, document, storage, text } = openPage();
  const root = part(document, 'order');
  const isMeant = mock(async (_prompt: string) => true);
  let outcome = Promise.withResolvers<Outcome>();
  const onGenerate = mock(
    (_order: GenerationOrder, _key: string, _onAccepted: () => void) => outcome.promise,
  );
  const form = createGenerateForm(root, { text, onGenerate, isMeant, tab: storage });
  const generate = part(root, 'generate');
  const prompt = part<HTMLTextAreaElement>(root, 'prompt');
  const length = part<HTMLInputElement>(root, 'length');
  form.showModels(MODELS);
  enter(prompt, ' Rain ');
  return {
    ...{ window, root, form, prompt, length, isMeant },
    model: part<HTMLSelectElement>(root, 'model'),
    keys: () => onGenerate.mock.calls.map(([, key]) => key),
    isReady: () => generate.getAttribute('aria-disabled') === 'false',
    async press(times = 1) {
      outcome = Promise.withResolvers();
      for (let time = 0; time < times; time++) generate.click();
      await settle();
      return onGenerate.mock.lastCall ?? [];
    },
    end: (reached: Outcome) => outcome.resolve(reached),
  };
}

it('an order is what the form holds, with the chosen model after they are loaded again, or none without one', async () => {
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
  expect(await press()).toMatchObject([order, expect.stringMatching(UUID), expect.any(Function)]);
});

function chosenRecording(document: Document): HTMLElement {
  const item = fromTemplate(document, 'recording-item');
  Object.assign(part<HTMLInputElement>(item, 'choice'), { value: 'humming', checked: true });
  return item;
}

/** Goes through steps, and returns a letter for the key of each order, and what the form says then. */
async function attempt(steps: string) {
  const { window, root, form, prompt, length, isMeant, press, end, keys, isReady } = openForm();
  const { KeyboardEvent, MouseEvent } = window;
  let accept = () => {};
  const answer = Promise.withResolvers<boolean>();
  const strike = (init: KeyboardEventInit) =>
    prompt.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, ...init }));
  const actions: Record<string, () => unknown> = {
    press: async () => {
      [, , accept = accept] = await press();
    },
    'double-click': () => press(2),
    'second-click': () =>
      part(root, 'generate').dispatchEvent(
        new MouseEvent('click', { detail: 2, bubbles: true, cancelable: true }),
      ),
    'ctrl-enter': () => strike({ ctrlKey: true }),
    'held-ctrl-enter': () => strike({ ctrlKey: true, repeat: true }),
    ask: () => isMeant.mockReturnValueOnce(answer.promise),
    yes: () => answer.resolve(true),
    no: () => answer.resolve(false),
    accept: () => accept(),
    Rain: () => enter(prompt, 'Rain'),
    Snow: () => enter(prompt, 'Snow'),
    public: () => part(root, 'public').click(),
    recording: () => part(root, 'choices').append(chosenRecording(root.ownerDocument)),
    'too-long': () => enter(length, '601'),
    credits: () => form.showBalance(20),
    'none-left': () => form.showBalance(0),
    long: () => enter(length, '60'),
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
    await settle();
  }
  const letters = keys().map((key) => 'ABCD'[[...new Set(keys())].indexOf(key)]);
  const hint = part(root, 'attempt').textContent.replace(english.sameAttempt, 'same');
  return [...letters, isReady() ? 'ready' : 'sending', hint].join(' ').trim();
}

it.each([
  ['a double click sends one', 'double-click', 'A sending'],
  ['its second click sends none, once the first is accepted', 'press accept second-click', 'A ready'],
  ['the keyboard does it too', 'ctrl-enter', 'A sending'],
  ['a key that is held down does not', 'held-ctrl-enter', 'ready'],
  ['what has to be asked first is not sent meanwhile', 'ask press press', 'sending'],
  ['and then sent', 'ask press yes', 'A sending'],
  ['or not', 'ask press no', 'ready'],
  ['and not for another account', 'ask press leave yes', 'ready'],
  ['what the gateway would refuse is not sent', 'too-long press', 'ready'],
  ['another order is sent at once', 'press Snow', 'A ready'],
  ['each order is sent once', 'press Snow press Rain press', 'A B sending'],
  ['it is sent again under a new key when it is done', 'press done press', 'A B sending'],
  ['a refused order keeps its key', 'press refused Snow Rain press refused press', 'A A A sending'],
  ['an uncertain order keeps its key', 'press uncertain Snow Rain press', 'A A sending'],
  ['it is said of an uncertain one', 'press uncertain', 'A ready same'],
  ['an uncertain order stays so when it is refused', 'press uncertain press refused', 'A A ready same'],
  ['a repeated one that is done is over', 'press uncertain press done press', 'A A B sending'],
  ['another order has another key', 'press uncertain public press', 'A B sending'],
  ['and so has one that starts from another recording', 'press uncertain recording press', 'A B sending'],
  ['each of several keeps its own', 'press uncertain Snow press uncertain Rain press', 'A B A sending'],
  ['and keeps it when another is done', 'press uncertain Snow press done Rain press', 'A B A sending'],
  ['the form says it of the order that it holds', 'press uncertain Snow', 'A ready'],
  ['and of no other one', 'press uncertain Snow press refused Rain', 'A B ready same'],
  ['what nobody can pay for is not sent', 'credits long press', 'ready'],
  ['nor what the orders before it leave nothing for', 'credits press Snow press', 'A ready'],
  ['but it is when they are refused', 'credits press Snow refused press', 'A B sending'],
  ['an uncertain order may be paid for already', 'press uncertain none-left press', 'A A sending'],
  ['another account may order the same', 'press leave', 'A ready'],
  ['another account has other keys', 'press leave uncertain press', 'A B sending'],
  ['also of what was uncertain before', 'press uncertain leave press', 'A B sending'],
])('of the attempts to order, %s: %s', async (_, steps, outcome) => {
  expect(await attempt(steps)).toBe(outcome);
});
