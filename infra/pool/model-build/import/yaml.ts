import { isAlias, isScalar, LineCounter, type Node, parseDocument, visit } from 'yaml';
import { MiB } from '../../../../shared/bytes.ts';
import { ok } from '../../../../shared/result.ts';
import { type BuildResult, problem } from '../problem.ts';

/** Nesting of a YAML file: no configuration is nested this deep. */
const MODEL_YAML_DEPTH = 64;
/** Configuration in YAML: three times the largest vocabulary list. */
const MODEL_YAML_CHARACTERS = 8 * MiB;

export type Yaml = null | boolean | number | string | Yaml[] | { [key: string]: Yaml };

/** A quoted text from its first quote to its last. The library accepts `'x''`, which has no last one. */
const SINGLE_QUOTED = /^'([^']|'')*'$/;

/**
 * Reads the YAML of a model_config.yaml: one document of maps, lists and scalars. Refuses anchors, aliases, tags,
 * repeated keys and deep nesting: readers differ in how they resolve them.
 */
export function readYaml(source: string, name: string): BuildResult<Yaml> {
  if (source.length > MODEL_YAML_CHARACTERS) return problem('bound', `${name} has ${source.length} characters`);
  const lines = new LineCounter();
  const document = parseDocument(source, { lineCounter: lines, prettyErrors: false, stringKeys: true });
  const refuse = (at: number, why: string) => problem('unreadable', `${name}, line ${lines.linePos(at).line}: ${why}`);
  const [error] = [...document.errors, ...document.warnings];
  if (error) return refuse(error.pos[0], error.message);
  let refused: ReturnType<typeof refuse> | undefined;
  visit(document, {
    Node(_, node, path) {
      const why = refusalOf(node, path.length, source);
      if (why === undefined) return undefined;
      refused = refuse(node.range?.[0] ?? 0, why);
      return visit.BREAK;
    },
  });
  return refused ?? ok(document.toJS() as Yaml);
}

function refusalOf(node: Node, depth: number, source: string): string | undefined {
  if (depth > 2 * MODEL_YAML_DEPTH) return 'is nested too deeply';
  if (isAlias(node) || node.anchor !== undefined) return 'uses an anchor or an alias';
  if (node.tag !== undefined) return 'uses a tag';
  const [from = 0, to = 0] = node.range ?? [];
  const isBroken = isScalar(node) && node.type === 'QUOTE_SINGLE' && !SINGLE_QUOTED.test(source.slice(from, to));
  return isBroken ? 'has a text that does not end' : undefined;
}

/** Returns the value at a path of keys, `undefined` where there is none. */
export function at(value: Yaml | undefined, ...keys: readonly string[]): Yaml | undefined {
  let found = value;
  for (const key of keys) {
    if (typeof found !== 'object' || found === null || Array.isArray(found) || !Object.hasOwn(found, key))
      return undefined;
    found = found[key];
  }
  return found;
}
