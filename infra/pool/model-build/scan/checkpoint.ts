import { MiB } from '../../../../shared/bytes.ts';
import { ok } from '../../../../shared/result.ts';
import type { Blob } from '../blob.ts';
import { type BuildResult, problem } from '../problem.ts';
import { scanPickle } from './pickle.ts';
import { listZip, readZipEntry } from './zip.ts';

/** Pickled part of a checkpoint, names and shapes without the numbers: ten thousand tensors take 4 MiB. */
const PICKLE_BYTES = 16 * MiB;

/** Files of a PyTorch checkpoint (`torch.save`): one pickle, numbers, and notes on their encoding. */
const known = /^[^/]+\/(data\/\d+|version|byteorder|\.format_version|\.storage_alignment|\.data\/serialization_id)$/;
const PICKLE = /^[^/]+\/data\.pkl$/;
/** Scans a checkpoint. Refuses TorchScript, which is code, the formats before PyTorch 1.6, and other files. */
export async function scanCheckpoint(blob: Blob): Promise<BuildResult<undefined>> {
  const magic = Buffer.from(await blob.read(0, 4)).toString('hex');
  if (magic !== '504b0304')
    return problem('unsafe', `${blob.name} is no checkpoint of PyTorch 1.6 or newer: save it again with torch.save`);
  const entries = await listZip(blob);
  if (!entries.ok) return entries;
  let pickles = 0;
  for (const entry of entries.value) {
    if (PICKLE.test(entry.name)) {
      const bytes = await readZipEntry(blob, entry, PICKLE_BYTES);
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
