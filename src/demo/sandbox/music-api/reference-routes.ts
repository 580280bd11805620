/** The upstream's routes for the recordings that tracks can start from. */

import { Type } from '@sinclair/typebox';
import { ApiError } from './api-error.ts';
import { readJson } from './json-body.ts';
import type { References } from './references.ts';
import { dataResponse, methods, type RequireAccount } from './route.ts';

type RequestWithId = Bun.BunRequest<'/:id'>;

/** Five minutes of a compact disc's quality are 53 MB. */
const MAX_BYTES = 64_000_000;

const choice = Type.Object({ is_chosen: Type.Boolean() }, { additionalProperties: false });

export function referenceRoutes(references: References, requireAccount: RequireAccount) {
  const add = async (request: Request) => {
    const account = requireAccount(request);
    // Before it is read, so that a long one is not sent for nothing.
    if (Number(request.headers.get('content-length')) > MAX_BYTES)
      throw new ApiError(413, `A recording may have ${MAX_BYTES / 1e6} MB at most.`);
    const file = await readFile(request);
    const reference = references.add(account, file.name, Buffer.from(await file.arrayBuffer()));
    return dataResponse(references.describe(reference), 201);
  };

  const change = async (request: RequestWithId) => {
    const account = requireAccount(request);
    const reference = references.find(account, request.params.id);
    references.choose(account, reference, (await readJson(request, choice)).is_chosen);
    return dataResponse(references.describe(reference));
  };

  const remove = (request: RequestWithId) => {
    const account = requireAccount(request);
    references.delete(account, references.find(account, request.params.id));
    return new Response(null, { status: 204 });
  };

  return {
    '/v1/music/references': methods({
      POST: add,
      GET: (request) => {
        const list = references.list(requireAccount(request));
        return dataResponse(list.map((reference) => references.describe(reference)));
      },
    }),
    '/v1/music/references/:id': methods({ PATCH: change, DELETE: remove }),
  };
}

/** @throws ApiError 400 unless the request is a form with a `file` */
async function readFile(request: Request): Promise<File> {
  const form = await request.formData().catch(() => undefined);
  const file = form?.get('file');
  if (!(file instanceof File)) throw new ApiError(400, 'A form with a file is required');
  return file;
}
