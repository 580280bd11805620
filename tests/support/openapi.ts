/** The OpenAPI document, and what it says of a response: every response of a world is compared with it. */

import { Validator } from '@seriousme/openapi-schema-validator';
import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { Ajv2020 } from 'ajv/dist/2020';
import { ROOT } from './documents.ts';

const Json = Type.Record(Type.String(), Type.Unknown());
const Content = Type.Record(Type.String(), Type.Object({ schema: Json }));
const Header = Type.Object({ required: Type.Optional(Type.Boolean()), description: Type.String() });
const Headers = Type.Record(Type.String(), Header);
const Operation = Type.Object({
  parameters: Type.Optional(Type.Array(Type.Object({ name: Type.String(), in: Type.String() }))),
  responses: Type.Record(Type.String(), Type.Object({ headers: Headers, content: Type.Optional(Content) })),
});
const Components = Type.Object({ schemas: Json });
const Document = Type.Object({ paths: Type.Record(Type.String(), Json), components: Components });

/** Of the connection, or in places of their own in OpenAPI, or of CORS, which the document describes as a whole. */
const NOT_DESCRIBED = /^(?:connection|content-length|content-type|date|transfer-encoding|access-control-.*)$/;

const yaml = await Bun.file(`${ROOT}src/gateway/openapi/openapi.yaml`).text();
/** Without the identity of what the aliases repeat, which the validator does not expect. */
export const document = Value.Parse(Json, JSON.parse(JSON.stringify(Bun.YAML.parse(yaml))));
export const validator = new Validator();
export const validity = await validator.validate(structuredClone(document));
/** With its references followed. */
const { paths, components } = Value.Parse(Document, validator.resolveRefs());
export const { schemas } = components;
/** By names such as `GET /api/health`. */
export const operations: ReadonlyMap<string, Static<typeof Operation>> = new Map(
  Object.entries(paths).flatMap(([path, { parameters: _, ...methods }]) =>
    Object.entries(methods).map(([method, operation]) => {
      return [`${method.toUpperCase()} ${path}`, Value.Parse(Operation, operation)] as const;
    }),
  ),
);
const patterns = [...operations.keys()].map((name) => {
  const pattern = name.replaceAll('.', '\\.').replace('{rest}', '.+').replace('{creation_id}', '[^/?]+');
  return [new RegExp(`^${pattern}(?:\\?.*)?$`), name] as const;
});
const ajv = new Ajv2020();

/** The described ones, in lower case. */
export function describedNames(names: Iterable<string>): string[] {
  return [...names].map((name) => name.toLowerCase()).filter((name) => !NOT_DESCRIBED.test(name));
}

/**
 * Compares the response with the document, unless that has no such operation. A body that may be the upstream's is not
 * looked at.
 *
 * @throws Error with what the document does not say
 */
export async function expectDocumented(method: string, target: string, response: Response): Promise<void> {
  const name = patterns.find(([pattern]) => pattern.test(`${method} ${target}`))?.[1];
  if (name === undefined) return;
  const { responses } = operations.get(name) ?? { responses: {} };
  const { status } = response;
  const key = [String(status), `${String(status)[0]}XX`, 'default'].find((each) => each in responses) ?? '';
  const documented = responses[key];
  const about = `${name} ${status}`;
  if (!documented) throw new Error(`${about} is not documented`);
  const { headers, content } = documented;
  const known = new Set(describedNames(Object.keys(headers)));
  // Limits are described as all whose names begin like this.
  const strangers = describedNames(response.headers.keys()).filter(
    (each) => !known.has(each.replace(/^(?:x-)?ratelimit.*/, 'ratelimit')),
  );
  const absent = Object.keys(headers).filter(
    (each) => headers[each]?.required && !response.headers.has(each),
  );
  // Of some, such as `no-store`, the value is the description.
  const wrong = Object.entries(headers).filter(([name, { description }]) => {
    const [, value] = /^`([^`]+)`\.$/.exec(description) ?? [];
    return value !== undefined && value !== response.headers.get(name);
  });
  if (strangers.length || absent.length || wrong.length)
    throw new Error(`${about}: not documented ${strangers}, absent ${absent}, wrong ${wrong}`);
  const schema = content?.['*/*'] ? undefined : content?.['application/json']?.schema;
  if (!schema) return;
  if (!response.headers.get('content-type')?.startsWith('application/json'))
    throw new Error(`${about}: no JSON`);
  if (!ajv.validate(schema, await response.clone().json())) throw new Error(`${about}: ${ajv.errorsText()}`);
}
