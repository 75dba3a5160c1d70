import path from 'node:path';
import { ok } from '../../../../shared/result.ts';
import { plainPath } from '../../models/config/names.ts';
import { parseText } from '../../models/config/parse-text.ts';
import { type Blob, openBlob } from '../blob.ts';
import { type BuildResult, problem } from '../problem.ts';
import { checkConfig } from './config-file.ts';
import { readText } from './data-file.ts';
import { findExternal } from './onnx-file.ts';
import { scanFile } from './scan.ts';

/** Scans files of a repository by the rules of the first gate. Returns the number of networks. */
export async function scanFiles(repository: string, files: readonly string[]): Promise<BuildResult<number>> {
  const networks = files.filter((file) => /\.onnx$/i.test(file));
  // Weights beside a network are numbers under any name; only the network identifies them.
  const weights = new Set<string>();
  for (const file of networks) {
    const found = await withBlob(repository, file, scanNetwork);
    if (!found.ok) return found;
    for (const location of found.value) weights.add(path.posix.join(path.posix.dirname(file), location));
  }
  const covered = new Set(files);
  for (const file of files) {
    if (networks.includes(file) || weights.has(file)) continue;
    const found = await withBlob(repository, file, (blob) => scanOther(blob, covered));
    if (!found.ok) return found;
  }
  return ok(networks.length);
}

async function withBlob<T>(
  repository: string,
  file: string,
  look: (blob: Blob) => Promise<BuildResult<T>>,
): Promise<BuildResult<T>> {
  const opened = await openBlob(path.join(repository, file), file).catch(() => undefined);
  if (!opened) return problem('unreadable', `${file} cannot be read`);
  return look(opened.blob).finally(opened.close);
}

async function scanNetwork(blob: Blob): Promise<BuildResult<string[]>> {
  const scanned = await scanFile(blob);
  if (!scanned.ok) return scanned;
  return scanned.value.onnx ? findExternal(blob.place.file, scanned.value.onnx) : ok([]);
}

async function scanOther(blob: Blob, covered: ReadonlySet<string>): Promise<BuildResult<undefined>> {
  // An empty file keeps an empty folder in git.
  if (blob.size === 0) return ok(undefined);
  if (!blob.name.endsWith('.pbtxt')) {
    const scanned = await scanFile(blob);
    return scanned.ok ? ok(undefined) : scanned;
  }
  const text = await readText(blob);
  if (!text.ok) return text;
  const parsed = parseText(text.value);
  if (!parsed.ok) return problem('unreadable', `${blob.name}: ${parsed.refusal.reason}`);
  const model = blob.name.slice(0, blob.name.indexOf('/') + 1);
  return checkConfig(parsed.value, blob.name, (part) => {
    const file = path.posix.join(model, part);
    // Files outside the repository have names that begin with `..`.
    return plainPath(file) === file && covered.has(file);
  });
}
