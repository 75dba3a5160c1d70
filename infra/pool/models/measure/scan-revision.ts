// Evidence "scan": every file of a revision, looked into as `import` looks into what comes from elsewhere.
import path from 'node:path';
import type { Evidence } from '../../../../shared/model/evidence.ts';
import { ok } from '../../../../shared/result.ts';
import { parseText } from '../config/parse-text.ts';
import { type Made, problem } from '../problem.ts';
import { type Blob, openBlob } from '../scan/blob.ts';
import { readText } from '../scan/data-file.ts';
import { findExternal } from '../scan/onnx-file.ts';
import { scanFile } from '../scan/scan.ts';
import type { Revision } from './revision.ts';

type Scan = Extract<Evidence, { kind: 'scan' }>;
type Files = Pick<Revision, 'repository' | 'files'>;

/** Texts of facts are no longer than that. */
const FACT_CHARACTERS = 512;

export async function scanRevision(revision: Files & Pick<Revision, 'model'>, tool: string): Promise<Scan> {
  const found = await scanFiles(revision);
  const named = { revision: revision.model.description.revision, files: revision.files.length };
  if (found.ok) return { kind: 'scan', tool, verdict: 'PASS', facts: { ...named, networks: found.value } };
  const { kind, text } = found.refusal;
  return {
    kind: 'scan',
    tool,
    verdict: 'FAIL',
    facts: { ...named, problem: `${kind}: ${text}`.slice(0, FACT_CHARACTERS) },
  };
}

/** How many networks there are, once nothing was found. */
async function scanFiles({ repository, files }: Files): Promise<Made<number>> {
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
  return parsed.ok ? ok(undefined) : problem('unreadable', `${blob.name}: ${parsed.refusal.reason}`);
}
