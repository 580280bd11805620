/** The service worker of the live audio in a scope that stands in for a browser's: its events are the test's to send. */

import type { LiveMessage } from '../../../src/demo/studio/live-audio.ts';

type Listener = (event: Readonly<Record<string, unknown>>) => void;

const listeners = new Map<string, Listener>();
const asked: string[] = [];
const scope = {
  addEventListener: (type: string, listener: Listener) => void listeners.set(type, listener),
  skipWaiting: async () => void asked.push('skipWaiting'),
  clients: { claim: async () => void asked.push('claim') },
};

await inScope(() => import('../../../src/demo/studio/live-audio-worker.ts'));

/** Sends one of the events of a worker's life; gives what it asks of its scope, once that is done. */
export async function live(type: 'install' | 'activate'): Promise<readonly string[]> {
  asked.length = 0;
  const waitedFor: unknown[] = [];
  await inScope(() => send(type, { waitUntil: (work: unknown) => void waitedFor.push(work) }));
  await Promise.all(waitedFor);
  return waitedFor.length > 0 ? asked : [];
}

/** What the page posts; the worker gets a copy, as through a real `postMessage`. */
export function post(message: LiveMessage): void {
  send('message', { data: structuredClone(message) });
}

/** The worker's answer to a request of the page; undefined when it leaves that to the network. */
export function request(url: string): Response | undefined {
  const answer = answerTo(url);
  if (answer instanceof Promise) throw new Error(`The worker waits for the track of ${url}`);
  return answer;
}

/** Its answer to a request that comes before the track. */
export function earlyRequest(url: string): Promise<Response | undefined> {
  return Promise.resolve(answerTo(url));
}

function answerTo(url: string): Response | Promise<Response> | undefined {
  const answers: (Response | Promise<Response>)[] = [];
  send('fetch', {
    request: new Request(new URL(url, 'https://studio.test')),
    respondWith: (answer: Response | Promise<Response>) => void answers.push(answer),
  });
  return answers[0];
}

function send(type: string, event: Readonly<Record<string, unknown>>): void {
  const listener = listeners.get(type);
  if (!listener) throw new Error(`The worker does not listen to "${type}"`);
  listener(event);
}

/** A worker knows its scope by the global name `self`, which is put back. */
async function inScope(run: () => unknown): Promise<void> {
  const own = Object.getOwnPropertyDescriptor(globalThis, 'self') ?? {};
  Object.defineProperty(globalThis, 'self', { configurable: true, value: scope });
  try {
    await run();
  } finally {
    Object.defineProperty(globalThis, 'self', own);
  }
}
