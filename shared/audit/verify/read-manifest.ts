// Parses and checks every member of a manifest that the verifier uses. Hand-written without a library, so
// that the verifier in a bundle stays readable.
import { type BundlePart, type FileDigest, type Manifest, POLICY } from '../bundle/manifest.ts';
import { isFormat } from '../derived/formats.ts';

type Json = Readonly<Record<string, unknown>>;

export const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isText = (value: unknown): value is string => typeof value === 'string';
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
const isPair = (value: unknown): boolean => Array.isArray(value) && value.length === 2 && value.every(isCount);
const isTime = (value: unknown): boolean => value === undefined || isCount(value);

/** Reports a canonical path inside the bundle. */
export const isPath = (value: unknown): value is string =>
  isText(value) && /^[A-Za-z0-9_-][A-Za-z0-9._-]*(\/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$/.test(value);

const isFile = (value: unknown): value is FileDigest =>
  isObject(value) && isPath(value.path) && /^[0-9a-f]{64}$/.test(String(value.sha256)) && isCount(value.bytes);

const isPart = (value: unknown): value is BundlePart =>
  isObject(value) &&
  isPath(value.entries) &&
  isPath(value.proofs) &&
  (value.disclosures === undefined || isPath(value.disclosures)) &&
  isObject(value.derived) &&
  Object.entries(value.derived).every(([format, path]) => isFormat(format) && isPath(path));

const isLink = (value: unknown): boolean => isObject(value) && isPath(value.entry) && isPath(value.receipt);

const isHead = (value: unknown): boolean => isObject(value) && isPath(value.path) && isCount(value.size);

const rules: Readonly<Record<string, (value: unknown) => boolean>> = {
  v: (value) => value === 1,
  export_id: isText,
  log: (value) => isObject(value) && isText(value.origin),
  tenant: (value) => isText(value) && value !== '',
  range: (value) => isObject(value) && isPair(value.tseq) && isPair(value.index),
  checkpoints: (value) => Array.isArray(value) && value.length > 0 && value.every(isHead),
  policy: (value) => value === POLICY,
  query: (value) => isObject(value) && [value.year, value.from, value.to, value.tseq_from, value.tseq_to].every(isTime),
  redaction: (value) => value === 'full' || value === 'auditor-min' || /^fields:[^,]+(,[^,]+)*$/.test(String(value)),
  counts: (value) => isObject(value) && [value.entries, value.disclosed, value.erased].every(isCount),
  parts: (value) => Array.isArray(value) && value.length > 0 && value.every(isPart),
  files: (value) => Array.isArray(value) && value.every(isFile) && isUnique(value.map(({ path }) => path)),
  purpose: isText,
  created: isText,
  anchor: (value) =>
    isObject(value) &&
    isCount(value.index) &&
    isText(value.id) &&
    value.type === 'export.create' &&
    (value.log === undefined || isText(value.log)),
  links: (value) =>
    value === undefined ||
    (isObject(value) && [value.before, value.after].every((some) => Array.isArray(some) && some.every(isLink))),
};

const isUnique = (values: readonly string[]): boolean => new Set(values).size === values.length;

function readObject(bytes: Uint8Array): Json | undefined {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Reports whether a file claims to be the manifest of an export: other programs have files of this name,
 * too.
 */
export function namesExport(bytes: Uint8Array): boolean {
  const value = readObject(bytes);
  return isText(value?.export_id) && isObject(value.log);
}

/** Parses a manifest, or names its invalid member. */
export function readManifest(bytes: Uint8Array): Manifest | { readonly wrong: string } {
  const manifest = readObject(bytes);
  if (!manifest) return { wrong: 'it is no JSON object' };
  const wrong = Object.keys(rules).find((name) => !rules[name]?.(manifest[name]));
  return wrong === undefined ? (manifest as unknown as Manifest) : { wrong: `its member "${wrong}" is not as agreed` };
}
