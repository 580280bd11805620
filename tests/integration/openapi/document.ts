/** The OpenAPI document as a client reads it: fetched, its references followed. */

import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { startWorld } from '../../support/world.ts';

const Content = Type.Record(
  Type.String(),
  Type.Object({ schema: Type.Record(Type.String(), Type.Unknown()) }),
);
const DocumentedAnswer = Type.Object({
  headers: Type.Record(Type.String(), Type.Object({ required: Type.Optional(Type.Boolean()) })),
  content: Type.Optional(Content),
});
const DocumentedOperation = Type.Object({
  operationId: Type.String(),
  parameters: Type.Optional(
    Type.Array(
      Type.Object({ name: Type.String(), in: Type.String(), required: Type.Optional(Type.Boolean()) }),
    ),
  ),
  requestBody: Type.Optional(Type.Object({ content: Content })),
  security: Type.Array(Type.Record(Type.String(), Type.Array(Type.String()))),
  responses: Type.Record(Type.String(), DocumentedAnswer),
});
const Document = Type.Object({
  paths: Type.Record(Type.String(), Type.Record(Type.String(), DocumentedOperation)),
  components: Type.Object({
    schemas: Type.Object({ Error: Type.Record(Type.String(), Type.Unknown()) }),
    securitySchemes: Type.Record(Type.String(), Type.Object({ name: Type.String() })),
  }),
});
export type DocumentedOperation = Static<typeof DocumentedOperation>;

export async function fetchDocument(): Promise<Record<string, unknown>> {
  await using world = startWorld();
  const response = await world.request('/api/openapi.json', { origin: null });
  return Value.Parse(Type.Record(Type.String(), Type.Unknown()), await response.json());
}

export function readDocument(document: Record<string, unknown>): Static<typeof Document> {
  const read = withoutReferences(document, document);
  Value.Assert(Document, read);
  return read;
}

/** Its operations, by names such as `GET /api/health`. */
export function operationsOf({ paths }: Static<typeof Document>): Map<string, DocumentedOperation> {
  return new Map(
    Object.entries(paths).flatMap(([path, operations]) =>
      Object.entries(operations).map(([method, operation]) => [`${method.toUpperCase()} ${path}`, operation]),
    ),
  );
}

function withoutReferences(node: unknown, document: Record<string, unknown>): unknown {
  if (Array.isArray(node)) return node.map((each) => withoutReferences(each, document));
  if (typeof node !== 'object' || node === null) return node;
  if ('$ref' in node) return withoutReferences(referredTo(String(node.$ref), document), document);
  return Object.fromEntries(
    Object.entries(node).map(([key, each]) => [key, withoutReferences(each, document)]),
  );
}

function referredTo(reference: string, document: Record<string, unknown>): unknown {
  let found: unknown = document;
  for (const key of reference.split('/').slice(1)) {
    found =
      typeof found === 'object' && found !== null
        ? Object.entries(found).find(([name]) => name === key)?.[1]
        : undefined;
  }
  if (found === undefined) throw new Error(`${reference} leads nowhere`);
  return found;
}
