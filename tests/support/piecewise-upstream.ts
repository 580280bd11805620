/** An upstream that sends the next piece of a track when the last one has arrived, so that no piece is split or joined. */

import type net from 'node:net';
import { startRawUpstream } from './raw-upstream.ts';

/** 1.8 KB, as a catalogue of models. */
const CATALOGUE = JSON.stringify({
  data: Array.from({ length: 18 }, (_, at) => ({ id: `model-${at}`, name: 'x'.repeat(60) })),
});
const PIECE = 'a'.repeat(16 * 1024);
const RANGE = PIECE.repeat(3);
export const TRACK_PIECES = 100;

export async function startPiecewiseUpstream() {
  let sendPiece: () => unknown = () => {};
  let unsent = 0;

  function responseTo(request: string): string {
    if (request.startsWith('GET /v1/range')) {
      return `HTTP/1.1 206 Partial Content\r\nContent-Type: audio/wav\r\nContent-Length: ${RANGE.length}\r\n\r\n${RANGE}`;
    }
    if (request.startsWith('GET /v1/track')) {
      const length = TRACK_PIECES * PIECE.length;
      return `HTTP/1.1 200 OK\r\nContent-Type: audio/wav\r\nContent-Length: ${length}\r\n\r\n${PIECE}`;
    }
    return `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${CATALOGUE.length}\r\n\r\n${CATALOGUE}`;
  }

  const respond = (socket: net.Socket, request: string) => {
    unsent = request.startsWith('GET /v1/track') ? TRACK_PIECES - 1 : 0;
    sendPiece = () => socket.write(PIECE);
    socket.write(responseTo(request));
  };
  const upstream = await startRawUpstream((socket, request) => {
    respond(socket, request);
    socket.on('data', (data) => respond(socket, data.toString()));
  });
  return {
    ...upstream,
    /** Sends the next piece when these bytes of a track are all that was sent. */
    onReceived(bytes: number): void {
      if (unsent === 0 || bytes < (TRACK_PIECES - unsent) * PIECE.length) return;
      unsent--;
      sendPiece();
    },
  };
}
