import { createHash } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { fault, type Read } from '../../../../shared/kserve/fault.ts';
import { ok } from '../../../../shared/result.ts';
import { MODEL_CONFIG_BYTES, parseText } from '../../models/config/parse-text.ts';
import type { ModelConfig } from '../../models/config/schema.ts';
import { chooseVersions, isEnsemble, settle } from '../../models/config/settle.ts';
import { emptyMessage } from '../../models/config/value.ts';

/** A model as its directory describes it, before it is loaded. */
export interface ModelFiles {
  readonly directory: string;
  readonly config: ModelConfig;
  /** Versions to serve, highest first. */
  readonly versions: readonly number[];
  /** Changes whenever a load would give another result. */
  readonly fingerprint: string;
}

/** A name that stays inside the repository: one path segment, no hidden file. */
export const isModelName = (name: string): boolean => /^[^./\\\0][^/\\\0]{0,255}$/.test(name);

async function readConfig(directory: string): Promise<Read<ModelConfig>> {
  const file = path.join(directory, 'config.pbtxt');
  try {
    const { size } = await stat(file);
    if (size > MODEL_CONFIG_BYTES) return fault(`config.pbtxt is over ${MODEL_CONFIG_BYTES} bytes`);
    const parsed = parseText(await readFile(file, 'utf8'));
    return parsed.ok ? parsed : fault(`config.pbtxt ${parsed.refusal.reason}`);
  } catch (error) {
    // Without a file the configuration derives from the model, as in Triton.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ok(emptyMessage('ModelConfig'));
    return fault(`config.pbtxt cannot be read: ${(error as NodeJS.ErrnoException).code}`);
  }
}

/**
 * Returns names, sizes and times of all files below the directory, which detect a change. Refuses links: no
 * digest and no signature of the model covers their targets.
 */
async function fingerprintOf(directory: string): Promise<Read<string>> {
  const hash = createHash('sha256');
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const placeOf = (entry: (typeof entries)[number]) => path.join(entry.parentPath, entry.name);
  const odd = entries.find((entry) => !entry.isFile() && !entry.isDirectory());
  if (odd) return fault(`${path.relative(directory, placeOf(odd))} is neither a file nor a folder`);
  const files = entries.filter((entry) => entry.isFile()).map(placeOf);
  for (const file of files.sort()) {
    const { size, mtimeMs } = await stat(file);
    hash.update(`${file}\0${size}\0${mtimeMs}\n`);
  }
  return ok(hash.digest('hex'));
}

/** Reads a model of a repository. */
export async function readModel(repository: string, name: string): Promise<Read<ModelFiles>> {
  const directory = path.join(repository, name);
  const given = await readConfig(directory);
  if (!given.ok) return given;
  const config = settle(given.value, name);
  if (!config.ok) return config;
  const entries = await readdir(directory, { withFileTypes: true });
  const present = entries.filter((entry) => entry.isDirectory() && /^[1-9]\d{0,14}$/.test(entry.name));
  // An ensemble has no files, and an empty version directory does not survive git: it is version 1 without one.
  const numbers = present.length === 0 && isEnsemble(config.value) ? [1] : present.map((entry) => Number(entry.name));
  const versions = chooseVersions(config.value, numbers);
  if (versions.length === 0) return fault('at least one version must be available under the version policy');
  const fingerprint = await fingerprintOf(directory);
  return fingerprint.ok
    ? ok({ directory, config: config.value, versions, fingerprint: fingerprint.value })
    : fingerprint;
}
