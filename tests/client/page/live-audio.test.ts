import { expect, it } from 'bun:test';
import { createLiveAudio, playArriving } from '../../../src/client/live-audio/live-audio.ts';

const contentUrl = (id: string) => `http://gateway.test/${id}/content`;

type State = Partial<Pick<Element, 'paused' | 'ended' | 'error' | 'currentTime' | 'src'>>;

/** What a page does with an `audio` element, as far as the module sees it. */
class Element extends EventTarget {
  #src = '';
  crossOrigin: string | null = null;
  currentTime = 0;
  paused = true;
  ended = false;
  error: unknown = null;
  plays: string[] = [];
  get src() {
    return this.#src;
  }
  set src(address) {
    this.#src = address;
    this.currentTime = 0;
  }
  async play() {
    this.plays.push(this.src);
    this.become('play', { paused: false });
  }
  /** Becomes so, as a browser tells it. */
  become(type: string, state: State) {
    Object.assign(this, state);
    this.dispatchEvent(new Event(type));
  }
}

interface Arrival {
  readonly creationId?: string | null;
  /** What happens before it is whole. */
  readonly meanwhile?: (audio: Element) => void;
}

/** A track that has arrived. */
async function arrive(hasWorker: boolean, { creationId = 'c-7', meanwhile = () => {} }: Arrival = {}) {
  const controller = hasWorker ? { postMessage: () => {} } : null;
  const liveAudio = createLiveAudio({ controller, register: async () => {} });
  const audio = new Element();
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull(controller) {
      meanwhile(audio);
      controller.close();
    },
  });
  const id = await playArriving(liveAudio, audio, { creationId, contentType: 'audio/wav', body }, contentUrl);
  const [live] = audio.plays;
  return { audio, id, live };
}

it.each([
  ['pause', { paused: true, currentTime: 7 }, 7, 0],
  ['pause', { paused: true, ended: true, currentTime: 30 }, 0, 0],
  ['seeking', { currentTime: 20 }, 20, 1],
  ['error', { error: 'the browser has stopped the worker', currentTime: 9 }, 9, 1],
  // In Chromium, if the element is part of the page.
  ['error', { error: 'the stream has failed', paused: true, currentTime: 9 }, 9, 1],
])('an arrived track has its own address after %s: %j', async (type, state, at, plays) => {
  const { audio, id, live } = await arrive(true);
  expect([id, live, audio.src]).toEqual(['c-7', expect.stringMatching(/^\/live\//), live]);
  audio.become(type, state);
  expect([audio.src, audio.currentTime, audio.crossOrigin]).toEqual([
    contentUrl('c-7'),
    at,
    'use-credentials',
  ]);
  expect(audio.plays).toHaveLength(1 + plays);
  // What the page plays later stays.
  audio.become('pause', { src: 'another' });
  expect(audio.src).toBe('another');
});

const CUT = ['error', { error: 'the stream has failed' }] as const;
const CUT_IN_CHROMIUM = ['error', { error: 'the stream has failed', paused: true }] as const;
const PAUSE = ['pause', { paused: true }] as const;
const PLAY = ['play', { paused: false }] as const;

it.each<[string, number, (readonly [string, State])[]]>([
  ['it played', 1, [CUT]],
  ['it played, in Chromium', 1, [CUT_IN_CHROMIUM, PAUSE]],
  ['it played again, in Chromium', 1, [PAUSE, PLAY, CUT_IN_CHROMIUM, PAUSE]],
  ['it was paused', 0, [PAUSE, CUT_IN_CHROMIUM]],
  ['it was paused afterwards', 0, [CUT, PAUSE]],
  ['it was paused afterwards, in Chromium', 0, [CUT_IN_CHROMIUM, PAUSE, PLAY, PAUSE]],
])('a track whose stream fails on the way plays on as before: %s, %d', async (_, plays, events) => {
  const meanwhile = (audio: Element) => {
    for (const [type, state] of events) audio.become(type, state);
  };
  const { audio } = await arrive(true, { meanwhile });
  expect([audio.src, audio.plays.length]).toEqual([contentUrl('c-7'), 1 + plays]);
});

it.each([true, false])(
  'a track leaves the element to the one after it, with a worker: %p',
  async (hasWorker) => {
    const meanwhile = (audio: Element) => audio.become('pause', { src: 'another' });
    const { audio } = await arrive(hasWorker, { meanwhile });
    audio.become('pause', {});
    expect(audio.src).toBe('another');
  },
);

it('without a worker, a track plays when it has arrived, if it has an id', async () => {
  expect((await arrive(false)).audio.plays).toEqual([contentUrl('c-7')]);
  expect((await arrive(false, { creationId: null })).audio.plays).toEqual([]);
});
