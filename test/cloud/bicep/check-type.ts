// Compares values of a template with the types of Azure resources. Problems bear the number of Bicep's own
// compiler.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { propertiesOf, type Syntax, unquoted } from './parse.ts';

interface Reference {
  readonly $ref: number;
}
interface Property {
  readonly type: Reference;
  readonly flags: number;
}
type Properties = Readonly<Record<string, Property>>;
type ResourceType =
  | { readonly $type: 'ObjectType'; readonly properties: Properties; readonly additionalProperties?: Reference }
  | { readonly $type: 'ArrayType'; readonly itemType: Reference }
  | { readonly $type: 'StringLiteralType'; readonly value: string }
  | { readonly $type: 'UnionType'; readonly elements: readonly Reference[] }
  | {
      readonly $type: 'DiscriminatedObjectType';
      readonly discriminator: string;
      readonly baseProperties: Properties;
      readonly elements: Readonly<Record<string, Reference>>;
    }
  | { readonly $type: 'StringType' | 'IntegerType' | 'BooleanType' | 'AnyType' | 'NullType' };

/** Bits of `flags`: required, known before the deployment (identity of the resource, which the caller has checked). */
const REQUIRED = 1;
const CONSTANT = 8;
/** Members of every resource in a template. */
const ALWAYS = new Set(['parent', 'scope', 'dependsOn', 'apiVersion', 'type', 'id']);

const [first = '', ...rest] = readFileSync(path.join(import.meta.dirname, 'types.ndjson'), 'utf8')
  .trim()
  .split('\n');
const resources: Readonly<Record<string, number>> = JSON.parse(first);
const types: readonly ResourceType[] = rest.map((line) => JSON.parse(line));
const at = ({ $ref }: Reference): ResourceType => types[$ref] ?? { $type: 'AnyType' };

const kinds: Readonly<Record<string, string>> = { string: 'StringType', number: 'IntegerType', boolean: 'BooleanType' };

/** Returns the problems of a resource's body, each with its line. */
export function checkResource(name: string, body: Syntax, isExisting: boolean): string[] {
  const type = resources[name];
  if (type === undefined) return [`${line(body)}: ${name}: unknown type or API version (BCP081)`];
  return isExisting ? [] : check(at({ $ref: type }), body, name.split('@')[0] ?? '');
}

const line = ({ startPosition }: Syntax): number => startPosition.row + 1;

function check(type: ResourceType, value: Syntax, where: string): string[] {
  // An expression has the type that it evaluates to.
  if (!['object', 'array', 'string', 'number', 'boolean'].includes(value.type)) return [];
  if (value.type === 'string' && value.text.includes('${')) return [];
  const wrong = (expected: string) => [`${line(value)}: ${where}: expected ${expected} (BCP036)`];
  switch (type.$type) {
    case 'ObjectType':
      return value.type === 'object' ? checkObject(type, value, where) : wrong('an object');
    case 'DiscriminatedObjectType': {
      if (value.type !== 'object') return wrong('an object');
      const chosen = propertiesOf(value).get(type.discriminator);
      const element = chosen && type.elements[unquoted(chosen)];
      if (!element) return wrong(`${type.discriminator} of ${Object.keys(type.elements).join(', ')}`);
      const own = at(element);
      const properties = { ...type.baseProperties, ...(own.$type === 'ObjectType' && own.properties) };
      return checkObject({ properties }, value, where);
    }
    case 'ArrayType':
      if (value.type !== 'array') return wrong('an array');
      return value.namedChildren.flatMap((one, index) => check(at(type.itemType), one, `${where}[${index}]`));
    case 'StringLiteralType':
      return value.type === 'string' && unquoted(value) === type.value ? [] : wrong(`'${type.value}'`);
    case 'UnionType': {
      // Providers leave lists of values open for later versions; a template names a value that is listed.
      const literals = type.elements.map(at).filter(({ $type }) => $type === 'StringLiteralType');
      const elements = literals.length > 0 ? literals : type.elements.map(at);
      return elements.some((one) => check(one, value, where).length === 0)
        ? []
        : wrong(elements.map(nameOf).join(' | '));
    }
    case 'AnyType':
    case 'NullType':
      return [];
    default:
      return kinds[value.type] === type.$type ? [] : wrong(type.$type);
  }
}

const nameOf = (type: ResourceType): string => (type.$type === 'StringLiteralType' ? type.value : type.$type);

function checkObject(
  { properties, additionalProperties }: { properties: Properties; additionalProperties?: Reference },
  value: Syntax,
  where: string,
): string[] {
  const given = propertiesOf(value);
  const problems = [...given].flatMap(([name, one]) => {
    const property = properties[name];
    if (property) return check(at(property.type), one, `${where}.${name}`);
    if (additionalProperties) return check(at(additionalProperties), one, `${where}.${name}`);
    return ALWAYS.has(name) ? [] : [`${line(one)}: ${where}.${name}: unknown property (BCP037)`];
  });
  const missing = Object.entries(properties).filter(
    ([name, { flags }]) => flags & REQUIRED && !(flags & CONSTANT) && !given.has(name) && !ALWAYS.has(name),
  );
  return [...problems, ...missing.map(([name]) => `${line(value)}: ${where}: misses ${name} (BCP035)`)];
}
