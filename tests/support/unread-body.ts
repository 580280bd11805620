/** How a call reads a response for which there is memory. */

import { RelayedBody } from '../../src/gateway/upstream/relayed-body.ts';

const ROOM = { headArrived: () => {}, learn: () => {}, reserveBody: () => undefined };

export const RELAYED = new RelayedBody(ROOM, new AbortController().signal);
