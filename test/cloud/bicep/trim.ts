// Takes the resource types that the templates use out of a checkout of Azure/bicep-types-az (MIT), without
// descriptions and properties that only answers have:
//
//   node infra/local/node.cjs test/cloud/bicep/trim.ts CHECKOUT
//
// Writes types.ndjson beside this file. Run it when a template uses a new type or API version.
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { ROOT } from '../../../infra/local/root.ts';

type Json = { [member: string]: unknown };

const checkout = path.resolve(process.argv[2] ?? '');
const templates = globSync('infra/azure/**/*.bicep', { cwd: ROOT });
const used = new Set(
  templates
    .flatMap((file) => [...readFileSync(path.join(ROOT, file), 'utf8').matchAll(/^resource \w+ '([^']+)'/gm)])
    .map(([, name = '']) => name),
);

/** Bits of `flags`: 1 is required, 2 read-only, 4 known before the deployment. */
const isReadOnly = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && 'flags' in value && (Number(value.flags) & 6) === 2;

/** Position that a reference such as `#/12` names. */
const numberOf = ({ $ref }: Json): number => Number(String($ref).slice(2));

/** Copies the types that one refers to, and renumbers the references. */
function collect(types: readonly Json[], from: number, kept: Json[], places: Map<number, number>): number {
  const known = places.get(from);
  if (known !== undefined) return known;
  const place = kept.push({}) - 1;
  places.set(from, place);
  const rename = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(rename);
    if (typeof value !== 'object' || value === null) return value;
    const members = Object.entries(value).filter(
      ([name, one]) => name !== 'description' && name !== 'functions' && !isReadOnly(one),
    );
    return Object.fromEntries(
      members.map(([name, one]) =>
        name === '$ref' ? [name, collect(types, numberOf(value as Json), kept, places)] : [name, rename(one)],
      ),
    );
  };
  kept[place] = rename(types[from]) as Json;
  return place;
}

const kept: Json[] = [];
const resources: Record<string, number> = {};
for (const name of [...used].sort()) {
  const [type = '', version = ''] = name.split('@');
  const provider = type.split('/')[0]?.toLowerCase();
  for (const file of globSync(`generated/*/${provider}/${version}/types.json`, { cwd: checkout })) {
    const types: Json[] = JSON.parse(readFileSync(path.join(checkout, file), 'utf8'));
    const resource = types.find(
      (one) => one.$type === 'ResourceType' && String(one.name).toLowerCase() === name.toLowerCase(),
    );
    if (resource) resources[name] = collect(types, numberOf(resource.body as Json), kept, new Map());
  }
  if (resources[name] === undefined) console.error(`${name} has no types in ${checkout}`);
}
const lines = [resources, ...kept].map((one) => JSON.stringify(one));
writeFileSync(path.join(import.meta.dirname, 'types.ndjson'), `${lines.join('\n')}\n`);
