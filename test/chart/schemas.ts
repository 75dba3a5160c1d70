// JSON schemas for kubeconform out of an OpenAPI document of Kubernetes or of custom resource definitions. They are
// strict: a field that the definition lacks is an error, unlike at an API server, which drops it.
import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { parseAllDocuments } from 'yaml';

export interface SchemaSource {
  /** Go module with its version. */
  readonly module: string;
  /** File or folder of that module. */
  readonly files: string;
}

type Node = { [key: string]: unknown };
interface Kind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}
interface Definition {
  readonly kind: string;
  readonly spec: {
    readonly group: string;
    readonly names: { readonly kind: string };
    readonly versions: readonly { readonly name: string; readonly schema: { readonly openAPIV3Schema: Node } }[];
  };
}

const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && !Array.isArray(value);
const REFERENCE = '#/definitions/';
/** Members that say nothing to a validator or that its dialect reads differently. */
const DROPPED = /^(x-|description$|default$|format$)/;

/** Returns the schema with references in place and unknown members refused; a type within itself is left open. */
function strict(schema: unknown, definitions: Node, within: readonly string[] = []): unknown {
  if (Array.isArray(schema)) return schema.map((one) => strict(one, definitions, within));
  if (!isNode(schema)) return schema;
  if (typeof schema.$ref === 'string') {
    const name = schema.$ref.slice(REFERENCE.length);
    return within.includes(name) ? {} : strict(definitions[name], definitions, [...within, name]);
  }
  const properties =
    isNode(schema.properties) &&
    Object.fromEntries(Object.entries(schema.properties).map(([k, v]) => [k, strict(v, definitions, within)]));
  const others = Object.entries(schema).filter(([key]) => key !== 'properties' && !DROPPED.test(key));
  const made: Node = Object.fromEntries(others.map(([key, value]) => [key, strict(value, definitions, within)]));
  if (schema['x-kubernetes-int-or-string'] || schema.format === 'int-or-string') {
    delete made.anyOf;
    made.type = ['integer', 'string'];
  } else if (schema.type === 'string' && /Quantity/.test(String(schema.description))) {
    made.type = ['string', 'number'];
  }
  if (!properties) return made;
  const open = 'additionalProperties' in schema || schema['x-kubernetes-preserve-unknown-fields'];
  return { ...made, properties, ...(!open && { additionalProperties: false }) };
}

async function write(folder: string, { group, version, kind }: Kind, schema: unknown): Promise<void> {
  const name = [kind.toLowerCase(), group, version].filter(Boolean).join('-');
  await writeFile(path.join(folder, `${name}.json`), JSON.stringify(schema));
}

async function writeSwagger(text: string, folder: string): Promise<void> {
  const { definitions } = JSON.parse(text) as { definitions: Node };
  for (const [name, definition] of Object.entries(definitions)) {
    if (!isNode(definition)) continue;
    const kinds = (definition['x-kubernetes-group-version-kind'] ?? []) as readonly Kind[];
    if (kinds.length === 0) continue;
    const schema = strict(definition, definitions, [name]);
    for (const kind of kinds) await write(folder, kind, schema);
  }
}

async function writeDefinitions(text: string, folder: string): Promise<void> {
  for (const document of parseAllDocuments(text)) {
    const { kind, spec } = (document.toJS() ?? {}) as Definition;
    if (kind !== 'CustomResourceDefinition') continue;
    for (const { name, schema } of spec.versions) {
      const made = strict(schema.openAPIV3Schema, {}) as { properties: Node };
      made.properties.metadata = { type: 'object' };
      await write(folder, { group: spec.group, version: name, kind: spec.names.kind }, made);
    }
  }
}

/** Writes a schema `kind-group-version.json` for each kind that the file, or each file of the folder, defines. */
export async function writeSchemas(source: string, folder: string): Promise<void> {
  const files = (await stat(source)).isDirectory()
    ? (await readdir(source)).map((f) => path.join(source, f))
    : [source];
  for (const file of files.filter((name) => /\.(json|ya?ml)$/.test(name))) {
    const text = await readFile(file, 'utf8');
    await (file.endsWith('.json') ? writeSwagger(text, folder) : writeDefinitions(text, folder));
  }
}
