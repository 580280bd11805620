import { expect, it } from 'bun:test';
import type { DownloadProgress } from '../../../src/client/download.ts';
import { rejection, respond, stubGateway } from './gateway-stub.ts';
import { audio, rest, TRACK } from './track.ts';

const PATH = '/v1/music/creations/7/content';
const TYPE = { 'content-type': 'audio/wav' };

it('a download is the whole file, and its progress has the size that the range names', async () => {
  const seen: DownloadProgress[] = [];
  const { client, sent } = stubGateway(rest());
  const file = await client.download(PATH, { onProgress: (progress) => seen.push(progress) });
  expect(await file.bytes()).toEqual(TRACK);
  expect(seen).toEqual([{ receivedBytes: TRACK.length, totalBytes: TRACK.length }]);
  expect(sent.map(({ call, headers }) => [call, headers.get('range')])).toEqual([
    [`GET /api/upstream${PATH}`, 'bytes=0-'],
  ]);
});

it('a download from an upstream without ranges has no size, but its type', async () => {
  const seen: DownloadProgress[] = [];
  const { client } = stubGateway(respond(200, TYPE, audio(TRACK, 'ends')));
  const file = await client.download(PATH, { onProgress: (progress) => seen.push(progress) });
  expect([file.type, file.size]).toEqual(['audio/wav', TRACK.length]);
  expect(seen).toEqual([{ receivedBytes: TRACK.length, totalBytes: undefined }]);
});

it.each([
  ['breaks off', rest({ ending: 'breaks' })],
  ['ends early', rest({ end: TRACK.length - 1 })],
])('a download that %s fails, and may be repeated', async (_, response) => {
  const { client } = stubGateway(response);
  const error = await rejection(client.download(PATH));
  expect(error).toMatchObject({ name: 'GatewayRequestError', status: 0, retryIsSafe: true });
});

it('a download ends with an error of the page, and closes its connection', async () => {
  const closed = Promise.withResolvers<unknown>();
  const pull = (controller: ReadableStreamDefaultController) => controller.enqueue(TRACK);
  const body = new ReadableStream({ pull, cancel: closed.resolve });
  const { client } = stubGateway(respond(200, {}, body));
  const onProgress = () => {
    throw new Error('of the page');
  };
  expect(await rejection(client.download(PATH, { onProgress }))).toMatchObject({ message: 'of the page' });
  await closed.promise;
});

it('a download ends with the reason of its signal', async () => {
  const left = new AbortController();
  const { client } = stubGateway(rest({ ending: 'stalls' }));
  const onProgress = () => left.abort('left');
  expect(await rejection(client.download(PATH, { signal: left.signal, onProgress }))).toBe('left');
});
