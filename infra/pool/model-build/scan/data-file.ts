import { gunzipSync } from 'node:zlib';
import { ok } from '../../../../shared/result.ts';
import type { Blob } from '../blob.ts';
import { MODEL_MANIFEST_BYTES, MODEL_TEXT_BYTES } from '../limits.ts';
import { fieldsOf, partsOf, WireError } from '../onnx/wire.ts';
import { type BuildResult, problem } from '../problem.ts';

/** Scans a UTF-8 text without control characters: vocabularies, label files, configurations. */
export async function scanText(blob: Blob): Promise<BuildResult<undefined>> {
  const read = await readText(blob);
  return read.ok ? ok(undefined) : read;
}

/** Returns the text of a file, decompressed when it is a gzip. */
export async function readText(blob: Blob): Promise<BuildResult<string>> {
  const most = MODEL_TEXT_BYTES;
  if (blob.size > most) return problem('bound', `${blob.name} has ${blob.size} bytes`);
  let bytes = await blob.read(0, blob.size);
  if (bytes[0] === 0x1f && bytes[1] === 0x8b) {
    try {
      bytes = gunzipSync(bytes, { maxOutputLength: most });
    } catch (error) {
      const large = (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE';
      return large
        ? problem('bound', `${blob.name} unpacks to more than ${most} bytes`)
        : problem('damaged', `${blob.name} is a damaged gzip`);
    }
  }
  // Tabs, line ends and form feeds are text; other characters below the space are not.
  if (bytes.some((byte) => byte < 32 && byte !== 9 && byte !== 10 && byte !== 12 && byte !== 13)) {
    return problem('unsafe', `${blob.name} should be a text and holds other bytes`);
  }
  try {
    return ok(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    return problem('unsafe', `${blob.name} is not UTF-8`);
  }
}

/** Scans a SentencePiece model: a protobuf message whose pieces (field 1) are messages themselves. */
export async function scanSentencePiece(blob: Blob): Promise<BuildResult<undefined>> {
  if (blob.size > MODEL_TEXT_BYTES) return problem('bound', `${blob.name} has ${blob.size} bytes`);
  try {
    let pieces = 0;
    for (const field of fieldsOf(await blob.read(0, blob.size))) {
      if (field.number !== 1) continue;
      for (const _ of partsOf(field)) pieces++;
    }
    if (pieces > 0) return ok(undefined);
  } catch (error) {
    if (!(error instanceof WireError)) throw error;
  }
  return problem('unsafe', `${blob.name} is no SentencePiece model`);
}

/** Scans a safetensors file: the length of a JSON header, the header, numbers. */
export async function scanSafetensors(blob: Blob): Promise<BuildResult<undefined>> {
  const first = await blob.read(0, 8);
  const length = first.length === 8 ? Number(Buffer.from(first).readBigUInt64LE()) : Number.NaN;
  if (!(length > 1 && length <= MODEL_MANIFEST_BYTES && 8 + length <= blob.size)) {
    return problem('unsafe', `${blob.name} is no safetensors file`);
  }
  try {
    const header: unknown = JSON.parse(Buffer.from(await blob.read(8, length)).toString('utf8'));
    if (typeof header === 'object' && header !== null) return ok(undefined);
  } catch {
    // The refusal follows below.
  }
  return problem('unsafe', `${blob.name} is no safetensors file`);
}

/** Scans a numpy array of numbers; an array of objects would be a pickle. */
export async function scanNumpy(blob: Blob): Promise<BuildResult<undefined>> {
  const head = Buffer.from(await blob.read(0, 4096)).toString('latin1');
  // Behind magic, version and length: numbers only, since `|O` would be objects.
  const found = /^.{2,4}\{'descr': '[<>|=][biufc]\d+', 'fortran_order': (True|False), 'shape': \([\d, ]*\), \}/s;
  const isArray = head.startsWith('\x93NUMPY') && found.test(head.slice(8));
  return isArray ? ok(undefined) : problem('unsafe', `${blob.name} is no numpy array of numbers`);
}
