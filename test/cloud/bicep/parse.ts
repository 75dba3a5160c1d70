// Reads Bicep templates with the grammar of tree-sitter.
import { pathToFileURL } from 'node:url';
import { grammar, runtime } from '../install.ts';

/** Node of a syntax tree, as far as the checker reads it. */
export interface Syntax {
  readonly type: string;
  readonly text: string;
  readonly startPosition: { readonly row: number };
  readonly children: readonly Syntax[];
  readonly namedChildren: readonly Syntax[];
  readonly hasError: boolean;
  readonly isError: boolean;
  readonly isMissing: boolean;
  childForFieldName(name: string): Syntax | null;
}

interface Runtime {
  readonly Parser: {
    new (): { setLanguage(language: unknown): void; parse(text: string): { readonly rootNode: Syntax } };
    init(): Promise<void>;
  };
  readonly Language: { load(file: string): Promise<unknown> };
}

export async function openParser(): Promise<(text: string) => Syntax> {
  const { Parser, Language }: Runtime = await import(pathToFileURL(runtime).href);
  await Parser.init();
  const parser = new Parser();
  parser.setLanguage(await Language.load(grammar));
  return (text) => parser.parse(text).rootNode;
}

export function* walk(node: Syntax): Generator<Syntax> {
  yield node;
  for (const child of node.namedChildren) yield* walk(child);
}

/** Text of a string without its quotes. */
export const unquoted = ({ text }: Syntax): string => text.replace(/^'|'$/g, '');

/** Properties of an object by name. A name that is computed is kept as it is written. */
export function propertiesOf(object: Syntax): Map<string, Syntax> {
  const rows = object.namedChildren.filter(({ type }) => type === 'object_property');
  return new Map(rows.map((row) => [unquoted(row.namedChildren[0] as Syntax), row.namedChildren.at(-1) as Syntax]));
}

/** Object that a declaration assigns: directly, in each turn of a loop, or under a condition. */
export function bodyOf(declaration: Syntax): Syntax | undefined {
  for (const child of declaration.namedChildren) {
    if (child.type === 'object') return child;
    if (child.type === 'for_statement') return child.childForFieldName('body') ?? undefined;
    if (child.type === 'if_statement') return child.namedChildren.find(({ type }) => type === 'object');
  }
  return undefined;
}
