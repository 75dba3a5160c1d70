import { limits } from '../../../../shared/limits.ts';
import { ok } from '../../../../shared/result.ts';
import type { Blob } from '../blob.ts';
import { type BuildResult, problem } from '../problem.ts';
import { BLOCK, beginsTar } from '../tar/header.ts';
import { scanPickle } from './pickle.ts';
import { listZip, readZipEntry } from './zip.ts';

/** Files of a PyTorch checkpoint (`torch.save`): one pickle, numbers, and notes on their encoding. */
const known = /^[^/]+\/(data\/\d+|version|byteorder|\.format_version|\.storage_alignment|\.data\/serialization_id)$/;
const PICKLE = /^[^/]+\/data\.pkl$/;
/** First of the five pickles of the older format, which precede the numbers. */
const OLD_MAGIC = '8002' + '8a0a6cfc9c46f9206aa850192e';

/** Scans a checkpoint in either format. Refuses TorchScript, which is code, and other files. */
export async function scanCheckpoint(blob: Blob): Promise<BuildResult<undefined>> {
  const magic = Buffer.from(await blob.read(0, 15)).toString('hex');
  if (magic.startsWith('504b0304')) return scanZip(blob);
  // PyTorch's oldest format, a tar. Its reader tries that first, whatever else the bytes may be.
  if (beginsTar(await blob.read(0, BLOCK))) return problem('unsafe', `${blob.name} is a tar as well as a checkpoint`);
  if (magic.startsWith(OLD_MAGIC)) return scanOld(blob);
  if (magic.startsWith('80')) return scanOne(blob);
  return problem('unsafe', `${blob.name} is no checkpoint this tool knows`);
}

async function scanZip(blob: Blob): Promise<BuildResult<undefined>> {
  const entries = await listZip(blob);
  if (!entries.ok) return entries;
  let pickles = 0;
  for (const entry of entries.value) {
    if (PICKLE.test(entry.name)) {
      const bytes = await readZipEntry(blob, entry, limits.modelPickleBytes.value);
      if (!bytes.ok) return bytes;
      const name = `${blob.name}/${entry.name}`;
      const end = scanPickle(bytes.value, name);
      if (!end.ok) return end;
      if (end.value !== bytes.value.length) return problem('unsafe', `${name} goes on behind its end`);
      pickles++;
    } else if (!known.test(entry.name)) {
      const why = /\/(code\/|constants\.pkl)/.test(entry.name)
        ? 'is TorchScript, which is code'
        : 'belongs to no checkpoint';
      return problem('unsafe', `${blob.name}/${entry.name} ${why}`);
    }
  }
  return pickles === 1 ? ok(undefined) : problem('unsafe', `${blob.name} has ${pickles} pickles instead of one`);
}

async function scanOld(blob: Blob): Promise<BuildResult<undefined>> {
  const bytes = await blob.read(0, limits.modelPickleBytes.value);
  let at = 0;
  for (let n = 0; n < 5; n++) {
    const end = scanPickle(bytes, blob.name, at);
    if (!end.ok) return end;
    at = end.value;
  }
  return ok(undefined);
}

async function scanOne(blob: Blob): Promise<BuildResult<undefined>> {
  if (blob.size > limits.modelPickleBytes.value)
    return problem('bound', `${blob.name} is a pickle of ${blob.size} bytes`);
  const bytes = await blob.read(0, blob.size);
  const end = scanPickle(bytes, blob.name);
  if (!end.ok) return end;
  return end.value === bytes.length ? ok(undefined) : problem('unsafe', `${blob.name} goes on behind its end`);
}
