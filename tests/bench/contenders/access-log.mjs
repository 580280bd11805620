/** One access line for each response, by pino in the background, for the contenders that are programs of ours. */

import pino from 'pino';

/** Undefined when no line is wanted. */
export const logger = process.env.ACCESS_LOG
  ? pino({ base: null }, pino.destination({ dest: 1, sync: false }))
  : undefined;

/**
 * For contenders whose framework shows no end of a streamed body: the line is written with the head of the response.
 *
 * @param respond notes in `facts` how long the upstream took; otherwise that is the time of the whole call
 */
export function withAccessLog(respond) {
  if (!logger) return (request, ...others) => respond(request, {}, ...others);
  return async (request, ...others) => {
    const startedAt = performance.now();
    const facts = {};
    const { url, method } = request;
    const response = await respond(request, facts, ...others);
    const durationMs = performance.now() - startedAt;
    logger.info({
      requestId: crypto.randomUUID(),
      method,
      path: url.slice(url.indexOf('/', 8)),
      status: response.status,
      durationMs,
      bytes: Number(response.headers.get('content-length')),
      upstreamMs: facts.upstreamMs ?? durationMs,
    });
    return response;
  };
}
