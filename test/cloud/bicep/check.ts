// A checker of Bicep templates, where its compiler cannot be had from a package registry: syntax, names,
// types of resources, parameters and outputs of modules.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { checkResource } from './check-type.ts';
import { bodyOf, propertiesOf, type Syntax, unquoted, walk } from './parse.ts';

/** Functions of Bicep that templates may call. */
const FUNCTIONS = new Set([
  ...['contains', 'endsWith', 'environment', 'filter', 'format', 'guid', 'indexOf', 'join', 'length', 'listKeys'],
  ...['map', 'replace', 'resourceGroup', 'split', 'startsWith', 'string', 'subscription', 'subscriptionResourceId'],
  ...['substring', 'toLower', 'toObject', 'union', 'uniqueString', 'utcNow'],
  // Decorators.
  ...['description', 'maxLength', 'maxValue', 'minLength', 'minValue', 'secure'],
]);

export interface Template {
  readonly file: string;
  readonly root: Syntax;
  /** Parameters by name; the value says whether a caller must give it. */
  readonly parameters: ReadonlyMap<string, boolean>;
  readonly outputs: ReadonlySet<string>;
}

type Parse = (text: string) => Syntax;

export function readTemplate(file: string, parse: Parse, text: string = readFileSync(file, 'utf8')): Template {
  const root = parse(text);
  const nameOf = (node: Syntax) => node.namedChildren.find(({ type }) => type === 'identifier')?.text ?? '';
  const all = root.namedChildren;
  return {
    file,
    root,
    parameters: new Map(
      all
        .filter(({ type }) => type === 'parameter_declaration')
        .map((node) => [nameOf(node), !node.children.some(({ type }) => type === '=')]),
    ),
    outputs: new Set(all.filter(({ type }) => type === 'output_declaration').map(nameOf)),
  };
}

/** Returns the problems of a template, `line: problem`. */
export function checkTemplate(template: Template, parse: Parse): string[] {
  const { root, file } = template;
  const nodes = [...walk(root)];
  const broken = nodes.filter(({ isError, isMissing }) => isError || isMissing);
  if (root.hasError) return broken.map((node) => `${node.startPosition.row + 1}: syntax error`);
  return [
    ...findUnknown(nodes),
    ...root.namedChildren.flatMap((node) => {
      if (node.type === 'resource_declaration') {
        const name = unquoted(node.namedChildren.find(({ type }) => type === 'string') as Syntax);
        const body = bodyOf(node);
        return body
          ? checkResource(
              name,
              body,
              node.children.some(({ type }) => type === 'existing'),
            )
          : [];
      }
      return node.type === 'module_declaration' ? checkModule(node, root, path.dirname(file), parse) : [];
    }),
  ];
}

/** Compares the parameters that a module gets, and the outputs that are read of it, with its template. */
function checkModule(node: Syntax, root: Syntax, folder: string, parse: Parse): string[] {
  const [symbol, source] = ['identifier', 'string'].map((type) => node.namedChildren.find((one) => one.type === type));
  const module = readTemplate(path.join(folder, unquoted(source as Syntax)), parse);
  const params = propertiesOf(bodyOf(node) as Syntax).get('params');
  const given = params ? [...propertiesOf(params).keys()] : [];
  const needed = [...module.parameters].filter(([, isNeeded]) => isNeeded).map(([name]) => name);
  const read = [...root.text.matchAll(new RegExp(`\\b${symbol?.text}!?\\.outputs\\.(\\w+)`, 'g'))].map(
    ([, one]) => one,
  );
  const line = node.startPosition.row + 1;
  return [
    ...given.filter((name) => !module.parameters.has(name)).map((name) => `${line}: no parameter ${name} (BCP037)`),
    ...needed.filter((name) => !given.includes(name)).map((name) => `${line}: misses parameter ${name} (BCP035)`),
    ...read.filter((name) => !module.outputs.has(name ?? '')).map((name) => `${line}: no output ${name} (BCP053)`),
  ];
}

/** Names that nothing declares (BCP057). */
function findUnknown(nodes: readonly Syntax[]): string[] {
  const declared = new Set<string>();
  const problems: string[] = [];
  for (const node of nodes) {
    if (/_declaration$|^lambda_expression$|^for_statement$|^for_loop_parameters$/.test(node.type))
      for (const one of namesIn(node)) declared.add(one);
  }
  for (const node of nodes) {
    if (node.type === 'call_expression') {
      const called = node.childForFieldName('function');
      if (called?.type === 'identifier' && !FUNCTIONS.has(called.text))
        problems.push(`${node.startPosition.row + 1}: no function ${called.text} (BCP057)`);
    }
    for (const name of usedBy(node))
      if (!declared.has(name.text)) problems.push(`${name.startPosition.row + 1}: no name ${name.text} (BCP057)`);
  }
  return problems;
}

/** Identifiers that a node introduces: its first one, and both of `for (item, index)`. */
function namesIn(node: Syntax): string[] {
  if (node.type === 'for_loop_parameters') return node.namedChildren.map(({ text }) => text);
  const first = node.type === 'for_statement' ? node.childForFieldName('initializer') : node.namedChildren[0];
  const name = first?.type === 'decorators' ? node.namedChildren.find(({ type }) => type === 'identifier') : first;
  return name?.type === 'identifier' ? [name.text] : [];
}

/** Identifiers that a node reads as values. */
function usedBy(node: Syntax): Syntax[] {
  const identifiers = node.namedChildren.filter(({ type }) => type === 'identifier');
  if (node.type === 'object_property') return node.namedChildren.slice(1).filter(({ type }) => type === 'identifier');
  if (node.type === 'call_expression') return [];
  if (/_declaration$|^type$|^decorator/.test(node.type)) return [];
  if (node.type === 'lambda_expression') return identifiers.slice(1);
  return identifiers;
}
