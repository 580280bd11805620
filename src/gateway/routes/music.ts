/** The model catalogue, and the generation of a track. */

import { Elysia } from 'elysia';
import { type Admission, STREAMED_SHARE } from '../http/admission/admission.ts';
import { completeResponse } from '../http/complete-response.ts';
import { GatewayError } from '../http/errors.ts';
import { forwardedRequestHeader, generationHeaders, limitHeaders } from '../http/forwarded-headers.ts';
import { messages } from '../http/messages.ts';
import { readFields } from '../http/request-body.ts';
import type { Session } from '../session/session.ts';
import type { SessionPlugin } from '../session/session-plugin.ts';
import type { Settings } from '../settings/settings.ts';
import { traceOf } from '../trace/request-trace.ts';
import { readErrorMessage } from '../upstream/error-message.ts';
import { isSuccess, type UpstreamResponse } from '../upstream/upstream-response.ts';
import { bufferedGet, bufferedResponse } from './buffered-get.ts';
import { GenerationRequest } from './schemas.ts';

const ORDER_FIELDS = Object.keys(GenerationRequest.properties);

/** What is known before the body is read. */
interface RequestParts {
  body: unknown;
  readonly request: Request;
  readonly session: Session;
}

export function musicRoutes(settings: Settings, session: SessionPlugin, admission: Admission) {
  const { streams, streamedBodies, requestBodies } = admission;
  return new Elysia({ name: 'music', prefix: '/api/music' })
    .use(session)
    .get('/models', ({ session, request, server, set }) =>
      bufferedGet({ settings, admission, session, request }, 'models', (upstream) =>
        bufferedResponse(upstream, { request, server, set }),
      ),
    )
    .post(
      '/generate',
      ({ body, session, request, server, set }) =>
        session.during(streams, async (place) => {
          const upstream = await generate(settings, session, body, request);
          // The generation is paid for, so it takes its place even when none is free.
          place.add(streamedBodies.take());
          const headers = generationHeaders(upstream.headers);
          return completeResponse({ request, server, set }, upstream.body, 200, headers, {
            firstPiece: upstream.firstPiece,
            longestMs: settings.timeouts.streamMs,
          });
        }),
      {
        body: GenerationRequest,
        // Parsing would run before the session check, but the body of an unauthenticated request is not to be read.
        parse: () => null,
        transform: async (context: RequestParts) => {
          await context.session.requirePlace(streams);
          streamedBodies.refuseIfFull(STREAMED_SHARE.generation);
          context.body = orderOf(await readFields(context.request, requestBodies, ORDER_FIELDS));
        },
      },
    );
}

async function generate(
  { upstreamUrl, timeouts }: Settings,
  session: Session,
  generation: GenerationRequest,
  request: Request,
): Promise<UpstreamResponse> {
  const idempotencyKey = forwardedRequestHeader(request, 'idempotency-key');
  const upstream = await session.fetch({
    name: 'music',
    trace: traceOf(request),
    method: 'POST',
    url: `${upstreamUrl}/v1/music`,
    headers: {
      'content-type': 'application/json',
      // Players expect unencoded audio. If the upstream encodes it anyway, it keeps its Content-Encoding.
      'accept-encoding': 'identity',
      ...(idempotencyKey === null ? {} : { 'idempotency-key': idempotencyKey }),
    },
    body: JSON.stringify({
      model: generation.model,
      prompt: generation.prompt,
      music_length_ms: generation.music_length_ms,
      force_instrumental: generation.force_instrumental === true,
      is_public: generation.is_public === true,
    }),
    timeoutMs: timeouts.streamMs,
    bodyMode: 'begun',
    // No signal is passed: a generation is paid for, so it continues when the client disconnects.
    texts: { late: messages.generationTimeout },
  });
  if (isSuccess(upstream)) return upstream;
  const text = (await readErrorMessage(upstream, timeouts.readMs)) ?? messages.generationFailed;
  throw new GatewayError(upstream.status, text, { headers: limitHeaders(upstream.headers) });
}

/** Copies the fields: a trimmed string would keep its whole source in memory, and a flag may be a large object. */
function orderOf(fields: unknown): unknown {
  if (typeof fields !== 'object' || fields === null) return null;
  const { model, prompt, music_length_ms, force_instrumental, is_public }: Partial<GenerationRequest> =
    fields;
  return structuredClone({
    model: trimmed(model),
    prompt: trimmed(prompt),
    music_length_ms,
    force_instrumental: force_instrumental === true,
    is_public: is_public === true,
  });
}

function trimmed(value: unknown): unknown {
  return typeof value === 'string' ? value.trim() : value;
}
