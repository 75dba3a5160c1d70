import {
  type FieldShape,
  fieldShape,
  isEnum,
  isMessage,
  type MessageName,
  type ModelConfig,
  messages,
} from './schema.ts';
import { emptyMessage } from './value.ts';

/**
 * Prints a configuration as config.pbtxt, by the table of the parser: parsing it gives an equal one. Defaults
 * are omitted, except kinds, which say more than their absence.
 */
export const printText = (config: ModelConfig): string => `${printMessage('ModelConfig', config, '').join('\n')}\n`;

function printMessage(message: MessageName, value: object, indent: string): string[] {
  const empty = emptyMessage(message) as Record<string, unknown>;
  const lines: string[] = [];
  for (const field of Object.keys(messages[message])) {
    const shape = fieldShape(message, field);
    const given = (value as Record<string, unknown>)[field];
    if (!shape || given === undefined) continue;
    if (shape.form === 'single') {
      if (given === empty[field] && !shape.optional && field !== 'kind') continue;
      lines.push(...printField(field, shape.type, given, indent));
    } else if (shape.form === 'map') {
      for (const [key, item] of Object.entries(given as object))
        lines.push(...printEntry(field, shape, [key, item], indent));
    } else lines.push(...printList(field, shape.type, given as unknown[], indent));
  }
  return lines;
}

function printField(field: string, type: FieldShape['type'], value: unknown, indent: string): string[] {
  if (!isMessage(type)) return [`${indent}${field}: ${printScalar(type, value)}`];
  const inner = printMessage(type, value as object, `${indent}  `);
  return inner.length === 0 ? [`${indent}${field} { }`] : [`${indent}${field} {`, ...inner, `${indent}}`];
}

function printList(field: string, type: FieldShape['type'], list: unknown[], indent: string): string[] {
  if (list.length === 0) return [];
  if (!isMessage(type)) return [`${indent}${field}: [ ${list.map((item) => printScalar(type, item)).join(', ')} ]`];
  const items = list.map((item) => [
    `${indent}  {`,
    ...printMessage(type, item as object, `${indent}    `),
    `${indent}  }`,
  ]);
  return [
    `${indent}${field} [`,
    ...items.flatMap((lines, at) => [...lines.slice(0, -1), `${lines.at(-1)}${at < items.length - 1 ? ',' : ''}`]),
    `${indent}]`,
  ];
}

function printEntry(
  field: string,
  { key = 'string', type }: FieldShape,
  [name, item]: readonly [string, unknown],
  indent: string,
): string[] {
  const value = printField('value', type, item, `${indent}  `);
  return [
    `${indent}${field} {`,
    `${indent}  key: ${printScalar(key, key === 'string' ? name : Number(name))}`,
    ...value,
    `${indent}}`,
  ];
}

function printScalar(type: FieldShape['type'], value: unknown): string {
  if (type === 'string') return printString(String(value));
  if (isEnum(type) || typeof value === 'boolean') return String(value);
  const number = Number(value);
  if (Number.isNaN(number)) return 'nan';
  return Number.isFinite(number) ? String(number) : number > 0 ? 'inf' : '-inf';
}

const escapes: Record<string, string> = { '"': '\\"', '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' };

const printString = (text: string): string =>
  `"${text.replace(/["\\\p{Cc}]/gu, (letter) => escapes[letter] ?? [...Buffer.from(letter)].map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join(''))}"`;
