/** The upstream's routes for models, generation, the library, and public creations. */

import { contentResponse, streamGeneration } from './creation-audio.ts';
import { readJson } from './json-body.ts';
import { type Creation, creationChanges, type Library, musicOrder } from './library.ts';
import { MODELS } from './model-catalog.ts';
import type { References } from './references.ts';
import { dataResponse, methods, type RequireAccount } from './route.ts';

type RequestWithId = Bun.BunRequest<'/:id'>;

export function musicRoutes(library: Library, references: References, requireAccount: RequireAccount) {
  const generate = async (request: Request) => {
    const account = requireAccount(request);
    const order = await readJson(request, musicOrder);
    // Accepting is synchronous, so that two requests with the same key cannot both create a track.
    const key = request.headers.get('idempotency-key');
    const creation = library.accept(account, order, key, references.chosen(account)?.heard);
    return streamGeneration(creation, library.progress(creation), () => library.finish(creation));
  };

  const change = async (request: RequestWithId) => {
    const account = requireAccount(request);
    const creation = library.find(account, request.params.id);
    library.change(account, creation, await readJson(request, creationChanges));
    return dataResponse(library.describe(creation));
  };

  const remove = (request: RequestWithId) => {
    const account = requireAccount(request);
    library.delete(account, library.find(account, request.params.id));
    return new Response(null, { status: 204 });
  };

  const ownCreation = (request: RequestWithId) => library.find(requireAccount(request), request.params.id);
  const content = (request: Request, creation: Creation) =>
    contentResponse(request, creation, library.progress(creation));

  return {
    '/v1/models': methods({
      GET: (request) => {
        requireAccount(request);
        return dataResponse(MODELS);
      },
    }),
    '/v1/music': methods({ POST: generate }),
    '/v1/music/creations': methods({
      GET: (request) => {
        const list = library.list(requireAccount(request));
        return dataResponse(list.map((creation) => library.describe(creation)));
      },
    }),
    '/v1/music/creations/:id': methods({
      GET: (request: RequestWithId) => dataResponse(library.describe(ownCreation(request))),
      PATCH: change,
      DELETE: remove,
    }),
    '/v1/music/creations/:id/content': methods({
      GET: (request: RequestWithId) => content(request, ownCreation(request)),
    }),
    '/v1/music/public/:id': methods({
      GET: (request: RequestWithId) => dataResponse(library.describe(library.findPublic(request.params.id))),
    }),
    '/v1/music/public/:id/content': methods({
      GET: (request: RequestWithId) => content(request, library.findPublic(request.params.id)),
    }),
  };
}
