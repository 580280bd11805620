/** The model catalogue, and the generation of a track. */

import { Elysia } from 'elysia';
import { readFields } from '../exchange/request-fields.ts';
import { GatewayError } from '../http/errors.ts';
import { forwardedRequestHeader, retryHeaders, trackHeaders } from '../http/forwarded-headers.ts';
import { validator } from '../http/validator.ts';
import type { SessionParts, SessionPlugin } from '../session/session.ts';
import { readErrorMessage } from '../upstream/error-message.ts';
import { GeneratedTrack } from '../upstream/generated-track.ts';
import { PaidTrack } from '../upstream/paid-track.ts';
import { isSuccess } from '../upstream/upstream-response.ts';
import { refuseDrained } from './drained-track.ts';
import { mappingOf } from './proxy-target.ts';
import { relayBuffered } from './relay-buffered.ts';
import { GenerationRequest, typeOf } from './schemas.ts';

const validGeneration = validator(GenerationRequest);

export function musicRoutes({ settings, api, admission }: SessionParts, sessionPlugin: SessionPlugin) {
  return new Elysia({ name: 'music', prefix: '/api/music' })
    .use(sessionPlugin)
    .get('/models', async ({ session, exchange }) => {
      await session.unseal();
      return relayBuffered(exchange, await session.fetchBuffered('models'));
    })
    .resolve(async ({ session, request }) => {
      await session.unseal();
      // The body is expensive to read, so it is read only for a session and when there is room for the call.
      const use = session.checkRoom('generation');
      const order = orderOf(await readFields(request, admission.orderBodies, GenerationRequest, use));
      // A trimmed string keeps the whole body in memory, so the minutes of the call keep only new JSON text.
      return { call: api.generationCall(order, forwardedRequestHeader(request, 'idempotency-key')) };
    })
    .post(
      '/generate',
      async ({ session, exchange, call }) => {
        const { memory } = await session.enter('generation');
        const { accessToken } = session.readTokens();
        const { streamMs, readMs } = settings.timeouts;
        const track = new PaidTrack(memory, streamMs);
        const bodyMode = new GeneratedTrack(track, readMs, accessToken !== undefined);
        exchange.record.lacksIdempotencyKey = call.headers['idempotency-key'] === undefined;
        const upstream = await session.fetch({ ...call, bodyMode });
        if (!isSuccess(upstream)) {
          const upstreamText = await readErrorMessage(upstream, readMs);
          const headers = retryHeaders(upstream.headers);
          throw new GatewayError(upstream.status, 'generationFailed', { upstreamText, headers });
        }
        refuseDrained(track, exchange, upstream);
        const headers = trackHeaders(upstream, mappingOf(call.url, settings.upstreamUrl));
        return exchange.respond(upstream.body, 200, headers, streamMs);
      },
      { parse: 'none', body: typeOf(GenerationRequest) },
    );
}

/** @throws GatewayError 400 when a field is invalid */
function orderOf(fields: Readonly<Record<string, unknown>> | null) {
  const { model, prompt, music_length_ms, force_instrumental, is_public } = validGeneration(
    fields && { ...fields, model: trimmed(fields['model']), prompt: trimmed(fields['prompt']) },
  );
  return {
    model,
    prompt,
    music_length_ms,
    force_instrumental: force_instrumental === true,
    is_public: is_public === true,
  };
}

function trimmed(value: unknown): unknown {
  return typeof value === 'string' ? value.trim() : value;
}
