/** The OpenAPI document as a client reads it: fetched, its references followed. */

import { Validator } from '@seriousme/openapi-schema-validator';
import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { startWorld } from '../../support/world.ts';

const Json = Type.Record(Type.String(), Type.Unknown());
const Content = Type.Record(Type.String(), Type.Object({ schema: Json }));
const Required = Type.Object({ required: Type.Optional(Type.Boolean()) });
const Parameter = Type.Object({ ...Required.properties, name: Type.String(), in: Type.String() });
const DocumentedResponse = Type.Object({
  headers: Type.Record(Type.String(), Required),
  content: Type.Optional(Content),
});
const DocumentedOperation = Type.Object({
  operationId: Type.String(),
  parameters: Type.Optional(Type.Array(Parameter)),
  requestBody: Type.Optional(Type.Object({ content: Content })),
  responses: Type.Record(Type.String(), DocumentedResponse),
});
export type DocumentedOperation = Static<typeof DocumentedOperation>;
const OfMethod = Type.Optional(DocumentedOperation);
const Path = Type.Object(
  {
    parameters: Type.Optional(Type.Array(Parameter)),
    get: OfMethod,
    head: OfMethod,
    post: OfMethod,
    put: OfMethod,
    patch: OfMethod,
    delete: OfMethod,
  },
  { additionalProperties: false },
);
const Document = Type.Object({
  paths: Type.Record(Type.String(), Path),
  components: Type.Object({
    schemas: Type.Object({ Error: Json, SignInRequest: Json, GenerationRequest: Json, SessionState: Json }),
    securitySchemes: Type.Record(Type.String(), Type.Object({ name: Type.String() })),
  }),
});

export async function fetchDocument(): Promise<Record<string, unknown>> {
  await using world = startWorld();
  const response = await world.request('/api/openapi.json', { origin: null });
  return Value.Parse(Json, await response.json());
}

export async function readDocument(): Promise<Static<typeof Document>> {
  const validator = new Validator();
  await validator.validate(await fetchDocument());
  const read: unknown = validator.resolveRefs();
  Value.Assert(Document, read);
  return read;
}

/** Its operations, by names such as `GET /api/health`, each with the parameters of its path. */
export function operationsOf({ paths }: Static<typeof Document>): Map<string, DocumentedOperation> {
  const operations = Object.entries(paths).flatMap(([path, { parameters: shared = [], ...methods }]) =>
    Object.entries(methods).map(([method, operation]) => {
      const parameters = [...shared, ...(operation.parameters ?? [])];
      return [`${method.toUpperCase()} ${path}`, { ...operation, parameters }] as const;
    }),
  );
  return new Map(operations);
}
