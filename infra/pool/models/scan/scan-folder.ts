import path from 'node:path';
import { ok } from '../../../../shared/result.ts';
import { parseText } from '../config/parse-text.ts';
import { type Made, problem } from '../problem.ts';
import { type Blob, openBlob } from './blob.ts';
import { checkConfig } from './config-file.ts';
import { readText } from './data-file.ts';
import { findExternal } from './onnx-file.ts';
import { scanFile } from './scan.ts';

/** Scans files of a repository as the first gate does. Returns how many networks there are, once nothing was found. */
export async function scanFiles(repository: string, files: readonly string[]): Promise<Made<number>> {
  const networks = files.filter((file) => /\.onnx$/i.test(file));
  // Weights beside a network are numbers under any name; only the network says that they are its own.
  const weights = new Set<string>();
  for (const file of networks) {
    const found = await withBlob(repository, file, scanNetwork);
    if (!found.ok) return found;
    for (const location of found.value) weights.add(path.posix.join(path.posix.dirname(file), location));
  }
  for (const file of files) {
    if (networks.includes(file) || weights.has(file)) continue;
    const found = await withBlob(repository, file, scanOther);
    if (!found.ok) return found;
  }
  return ok(networks.length);
}

async function withBlob<T>(repository: string, file: string, look: (blob: Blob) => Promise<Made<T>>): Promise<Made<T>> {
  const opened = await openBlob(path.join(repository, file), file).catch(() => undefined);
  if (!opened) return problem('unreadable', `${file} cannot be read`);
  return look(opened.blob).finally(opened.close);
}

async function scanNetwork(blob: Blob): Promise<Made<string[]>> {
  const scanned = await scanFile(blob);
  if (!scanned.ok) return scanned;
  return scanned.value.onnx ? findExternal(blob.place.file, scanned.value.onnx) : ok([]);
}

async function scanOther(blob: Blob): Promise<Made<undefined>> {
  // What keeps an empty folder in a repository of sources.
  if (blob.size === 0) return ok(undefined);
  if (!blob.name.endsWith('.pbtxt')) {
    const scanned = await scanFile(blob);
    return scanned.ok ? ok(undefined) : scanned;
  }
  const text = await readText(blob);
  if (!text.ok) return text;
  const parsed = parseText(text.value);
  return parsed.ok
    ? checkConfig(parsed.value, blob.name)
    : problem('unreadable', `${blob.name}: ${parsed.refusal.reason}`);
}
