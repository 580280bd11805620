/** The model catalogue, and generating a track. */

import type { Server } from 'bun';
import { Elysia } from 'elysia';
import { GatewayError } from '../http/errors.ts';
import { forwardedRequestHeader, generationHeaders } from '../http/forwarded-headers.ts';
import { messages } from '../http/messages.ts';
import { nativeResponse } from '../http/native-response.ts';
import { refuseOverload } from '../http/overload.ts';
import { readFields } from '../http/request-body.ts';
import { traceOf } from '../http/request-trace.ts';
import type { Session, SessionPlugin } from '../session/session.ts';
import type { Settings } from '../settings.ts';
import { readErrorMessage } from '../upstream/error-message.ts';
import { isSuccess, type UpstreamAnswer } from '../upstream/upstream-answer.ts';
import { GenerationRequest } from './schemas.ts';
import { wholeAnswer, wholeGet } from './whole-get.ts';

/** What is at hand before the body is read. */
interface RequestParts {
  body: unknown;
  readonly request: Request;
  readonly server: Server<unknown> | null;
  readonly session: Session;
}

export function musicRoutes(settings: Settings, session: SessionPlugin) {
  return new Elysia({ name: 'music', prefix: '/api/music' })
    .use(session)
    .get('/models', async ({ session, request, set }) =>
      wholeAnswer(await session.fetch(wholeGet(settings, 'models', request)), { request, set }),
    )
    .post(
      '/generate',
      async ({ body, session, request, set }) => {
        const upstream = await generate(settings, session, body, request);
        return nativeResponse({ request, set }, upstream.body, 200, generationHeaders(upstream.headers));
      },
      {
        body: GenerationRequest,
        // Parsing comes before the check of the session, and a body need not be read for nobody.
        parse: () => null,
        transform: async (context: RequestParts) => {
          await context.session.requireTokens();
          refuseOverload(context.server, settings.maxHeldRequests);
          context.body = trimmed(await readFields(context.request));
        },
      },
    );
}

async function generate(
  { upstreamUrl, timeouts }: Settings,
  session: Session,
  generation: GenerationRequest,
  request: Request,
): Promise<UpstreamAnswer> {
  const idempotencyKey = forwardedRequestHeader(request, 'idempotency-key');
  const upstream = await session.fetch({
    name: 'music',
    trace: traceOf(request),
    method: 'POST',
    url: `${upstreamUrl}/v1/music`,
    headers: {
      'content-type': 'application/json',
      // The answer's encoding is not passed on, so there must be none.
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
    answer: 'streamed',
    // No signal: a generation is paid for, so it is left to finish when the client goes away.
    texts: { late: messages.generationTimeout },
  });
  if (isSuccess(upstream)) return upstream;
  const text = (await readErrorMessage(upstream, timeouts.readMs)) ?? messages.generationFailed;
  throw new GatewayError(upstream.status, text);
}

function trimmed(fields: unknown): unknown {
  if (typeof fields !== 'object' || fields === null) return fields;
  if ('model' in fields && typeof fields.model === 'string') fields.model = fields.model.trim();
  if ('prompt' in fields && typeof fields.prompt === 'string') fields.prompt = fields.prompt.trim();
  return fields;
}
