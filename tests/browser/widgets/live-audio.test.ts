import { describe, expect, it, mock } from 'bun:test';
import { createLiveAudio, type LiveMessage } from '../../../src/demo/studio/live-audio.ts';
import { fakeTime, settle } from './page.ts';
import { earlyRequest, live, post, request } from './service-worker-stand-in.ts';

/** The page's side, with a browser whose worker gets what is posted, if one serves the page. */
function openLiveAudio({ isServed = true } = {}) {
  const posted: LiveMessage[] = [];
  const postMessage = (message: LiveMessage) => {
    posted.push(message);
    post(message);
  };
  const register = mock(async (_url: string): Promise<unknown> => undefined);
  const workers: { controller: { postMessage: typeof postMessage } | null; register: typeof register } = {
    controller: isServed ? { postMessage } : null,
    register,
  };
  return { posted, register, workers, liveAudio: createLiveAudio(workers) };
}

function begin(contentType = 'audio/mpeg') {
  const track = openLiveAudio().liveAudio.begin(contentType);
  if (!track) throw new Error('There is no worker');
  return track;
}

const bytes = (...values: number[]) => new Uint8Array(values);

/** Reads what an `audio` element would: the pieces one by one. */
function listen(url: string) {
  const reader = request(url)?.body?.getReader();
  if (!reader) throw new Error('The worker has no answer');
  return reader;
}

describe('audio that plays while it arrives', () => {
  it('is answered piece by piece, as it is added', async () => {
    const track = begin();
    const element = listen(track.url);
    track.add(bytes(1, 2));
    expect(await element.read()).toEqual({ done: false, value: bytes(1, 2) });
    const next = element.read();
    expect(Bun.peek.status(next)).toBe('pending');
    track.add(bytes(3));
    expect(await next).toEqual({ done: false, value: bytes(3) });
    track.end();
    expect((await element.read()).done).toBe(true);
  });

  it('is answered whole to an element that comes late', async () => {
    const track = begin();
    track.add(bytes(1, 2));
    track.add(bytes(3));
    track.end();
    await settle();
    const answer = request(track.url);
    expect(await answer?.bytes()).toEqual(bytes(1, 2, 3));
  });

  it('says what it is, and is not kept by the browser', () => {
    const answer = request(begin('audio/wav').url);
    expect(answer?.status).toBe(200);
    expect(answer?.headers.get('content-type')).toBe('audio/wav');
    expect(answer?.headers.get('cache-control')).toBe('no-store');
  });

  it('fails at the element when it breaks: it must not look whole', async () => {
    const track = begin();
    const element = listen(track.url);
    track.add(bytes(1));
    await element.read();
    track.break();
    const next = element.read().then(
      () => 'whole',
      () => 'broken',
    );
    expect(await next).toBe('broken');
  });

  it('may be left by its element while it arrives', async () => {
    const track = begin();
    const element = listen(track.url);
    await element.cancel();
    track.add(bytes(1));
    track.end();
    await settle();
    expect(request(track.url)?.status).toBe(404);
  });

  it('is told from another track that arrives at the same time', async () => {
    const [one, other] = [begin(), begin()];
    expect(one.url).not.toBe(other.url);
    other.add(bytes(2));
    one.add(bytes(1));
    one.end();
    other.end();
    expect(await request(one.url)?.bytes()).toEqual(bytes(1));
    expect(await request(other.url)?.bytes()).toEqual(bytes(2));
  });
});

describe('the worker', () => {
  it('serves the page at once, without waiting for the next visit', async () => {
    expect(await live('install')).toEqual(['skipWaiting']);
    expect(await live('activate')).toEqual(['claim']);
  });

  it.each(['/', '/config.json', '/studio.js', '/live', '/alive/x', 'https://gateway.test/api/music/models'])(
    'leaves other requests to the network: %s',
    (url) => {
      expect(request(url)).toBeUndefined();
    },
  );

  it('does not have a track that nobody begins, whatever is posted of it', async () => {
    const advance = fakeTime();
    const answer = earlyRequest('/live/unknown');
    post({ id: 'unknown', kind: 'piece', piece: bytes(1) });
    post({ id: 'unknown', kind: 'end' });
    await advance(5_000);
    expect((await answer)?.status).toBe(404);
  });

  it('answers a request that has overtaken the beginning of its track', async () => {
    const answer = earlyRequest('/live/overtaken');
    post({ id: 'overtaken', kind: 'begin', contentType: 'audio/wav' });
    post({ id: 'overtaken', kind: 'piece', piece: bytes(1) });
    post({ id: 'overtaken', kind: 'end' });
    expect((await answer)?.headers.get('content-type')).toBe('audio/wav');
    expect(await (await answer)?.bytes()).toEqual(bytes(1));
  });

  it('answers one request for a track: a second one finds nothing', async () => {
    const track = begin();
    const element = listen(track.url);
    expect(request(track.url)?.status).toBe(404);
    track.add(bytes(1));
    expect((await element.read()).value).toEqual(bytes(1));
  });
});

describe('the page', () => {
  it('registers the worker by the name under which it is served', () => {
    expect(openLiveAudio().register.mock.calls).toEqual([['/live-audio-worker.js']]);
  });

  it('posts the kind of each step, under one id', () => {
    const { posted, liveAudio } = openLiveAudio();
    const track = liveAudio.begin('audio/mpeg');
    track?.add(bytes(1));
    track?.end();
    expect(posted.map(({ kind }) => kind)).toEqual(['begin', 'piece', 'end']);
    expect(posted.map(({ id }) => `/live/${id}`)).toEqual(Array(3).fill(track?.url));
  });

  it('does without where no worker serves it, and takes one that comes later', () => {
    const { workers, liveAudio } = openLiveAudio({ isServed: false });
    expect(liveAudio.begin('audio/mpeg')).toBeUndefined();
    workers.controller = { postMessage: post };
    expect(liveAudio.begin('audio/mpeg')).toBeDefined();
  });

  it('does without in a browser that has no workers, or allows none', async () => {
    expect(createLiveAudio(undefined).begin('audio/mpeg')).toBeUndefined();
    const register = mock(() => Promise.reject(new Error('not allowed')));
    expect(createLiveAudio({ controller: null, register }).begin('audio/mpeg')).toBeUndefined();
    await settle();
    expect(register).toHaveBeenCalledTimes(1);
  });
});
