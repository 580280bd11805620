/** The Studio in a browser of any engine, and what a person does in it. */

import { english } from '../../../src/demo/studio/english.ts';
import type { Engine } from '../../support/browser-engine.ts';
import { type DemoWorldOptions, startDemoWorld } from '../../support/demo-world.ts';
import { Person } from './person.ts';

export const STARTING_BALANCE = 1_000;

/** The Studio in a world of its own, with the page that a person has opened. */
export async function openStudio(
  engine: Engine,
  { isPrivate = false, ...options }: DemoWorldOptions & { readonly isPrivate?: boolean } = {},
) {
  await using stack = new AsyncDisposableStack();
  const world = stack.use(await startDemoWorld({ startingBalance: STARTING_BALANCE, ...options }));
  const person = stack.use(new Person(await engine.launch({ isPrivate })));
  await person.open(world.studioUrl);
  const opened = stack.move();
  return { world, person, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

/** Goes through the identity provider's form. */
export async function signIn(person: Person): Promise<void> {
  await person.clicks(english.signIn);
  await person.types('Name', 'Ada');
  await person.clicks('Sign in');
  await isSignedIn(person);
}

/** Waits until the Studio knows the person, and what can be ordered. */
export async function isSignedIn(person: Person): Promise<void> {
  await person.until('a session', () => document.body.dataset['session'] === 'signed-in');
  await person.sees('Ada');
  await person.until('the models', () => document.querySelector('select [value^="sandbox"]') !== null);
}

/** Waits until the service worker can play a track that is still arriving. */
export async function canPlayArriving(person: Person): Promise<void> {
  await person.until('the service worker', () => navigator.serviceWorker.controller !== null);
}

export async function order(person: Person, seconds = 10): Promise<void> {
  await person.types(english.prompt, 'Rain on a tin roof');
  await person.types(english.length, String(seconds));
  await person.clicks(english.generate);
}

/** Waits until the player has got beyond so many seconds, and returns the path of what it plays. */
export function playsBeyond(person: Person, seconds: number): Promise<string> {
  return person.until(
    `second ${seconds} of the track`,
    (seconds) => {
      const audio = document.querySelector('audio');
      return audio && audio.currentTime > seconds ? new URL(audio.src).pathname : undefined;
    },
    seconds,
  );
}
