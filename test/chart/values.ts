// Documentation of values.yaml as data: the comment above each key becomes its description, and marks at the end of a
// comment its schema (@enum a|b, @type object|array|number, @min N, @max N).
import { isMap, isScalar, type Pair, parseDocument, type YAMLMap } from 'yaml';

export interface Value {
  readonly path: readonly string[];
  readonly text: string;
  readonly marks: ReadonlyMap<string, string>;
  /** Default; `undefined` for a section, which has values of its own. */
  readonly initial: unknown;
}

const MARK = /@(enum|type|min|max) (\S+)/g;

function readPair(pair: Pair, comment: string, path: readonly string[]): readonly Value[] {
  const text = comment.replace(MARK, '').replace(/\s+/g, ' ').trim();
  const marks = new Map([...comment.matchAll(MARK)].map(([, name = '', value = '']) => [name, value]));
  const { value } = pair;
  const isSection = isMap(value) && value.items.length > 0 && !marks.has('type');
  if (isSection) return [{ path, text, marks, initial: undefined }, ...readMap(value, path)];
  const initial = isScalar(value) ? value.value : (value as YAMLMap | undefined)?.toJSON();
  return [{ path, text, marks, initial: initial ?? null }];
}

function readMap(map: YAMLMap, path: readonly string[] = []): readonly Value[] {
  return map.items.flatMap((pair, index) => {
    const key = isScalar(pair.key) ? pair.key : undefined;
    // The parser gives the first comment of a map to the map.
    const comment = key?.commentBefore ?? (index === 0 ? map.commentBefore : undefined) ?? '';
    return readPair(pair, comment, [...path, String(key?.value)]);
  });
}

export function readValues(text: string): readonly Value[] {
  const { contents } = parseDocument(text);
  return isMap(contents) ? readMap(contents) : [];
}

type Schema = { [key: string]: unknown };

function schemaOf({ text, marks, initial }: Value): Schema {
  const described = text === '' ? {} : { description: text };
  const options = marks.get('enum')?.split('|');
  if (options) return { ...described, enum: options };
  const type = marks.get('type') ?? (typeof initial === 'number' ? 'integer' : typeof initial);
  const bounds = {
    ...(marks.has('min') && { minimum: Number(marks.get('min')) }),
    ...(marks.has('max') && { maximum: Number(marks.get('max')) }),
  };
  return { ...described, type: initial === null ? [type, 'null'] : type, ...bounds };
}

/** Returns the JSON schema of the values: unknown keys are refused in every section. */
export function valuesSchema(values: readonly Value[]): Schema {
  const section = (described: Schema): Schema & { properties: Schema } => ({
    ...described,
    type: 'object',
    additionalProperties: false,
    properties: {},
  });
  const root = section({ $schema: 'https://json-schema.org/draft/2020-12/schema' });
  // Helm adds `global` to the values of every chart.
  root.properties.global = { type: 'object' };
  const sections = new Map([['', root]]);
  for (const value of values) {
    const parent = sections.get(value.path.slice(0, -1).join('.'));
    const made = value.initial === undefined ? section(value.text ? { description: value.text } : {}) : schemaOf(value);
    if (value.initial === undefined) sections.set(value.path.join('.'), made as Schema & { properties: Schema });
    if (parent) parent.properties[value.path.at(-1) ?? ''] = made;
  }
  return root;
}

/** Returns the table of values in Markdown. */
export function valuesTable(values: readonly Value[]): string {
  const rows = values
    .filter(({ initial }) => initial !== undefined)
    .map(({ path, text, marks, initial }) => {
      const options = marks.get('enum')?.split('|');
      const meaning = options ? `${text} One of \`${options.join('`, `')}\`.` : text;
      const shown = initial === '' || initial === null ? '' : `\`${JSON.stringify(initial)}\``;
      return `| \`${path.join('.')}\` | ${shown.replaceAll('|', '\\|')} | ${meaning.replaceAll('|', '\\|')} |`;
    });
  return ['| value | default | meaning |', '| --- | --- | --- |', ...rows, ''].join('\n');
}
