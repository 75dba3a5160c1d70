import { createReadStream } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { Tensor } from 'onnxruntime-node';
import { MiB } from '../../../../shared/bytes.ts';
import { decodeInferRequest } from '../../../../shared/kserve/infer-request.ts';
import { readFp32, readInt32, type Tensor as Sent } from '../../../../shared/kserve/tensor.ts';
import { ok } from '../../../../shared/result.ts';
import { decodeSound } from '../../agent/audio/decode.ts';
import { joinSamples } from '../../agent/audio/join.ts';
import { createMono } from '../../agent/audio/mono.ts';
import { type BuildResult, problem } from '../problem.ts';
import { type Featurizer, openFeaturizer } from './featurizer.ts';

/**
 * Requests that activation scales are computed from (A22), spread over all available: more change nothing.
 */
export const CALIBRATION_SAMPLES_MAX = 1000;
/** One calibration request: the limit of the embedded engine. */
const CALIBRATION_SAMPLE_BYTES = 64 * MiB;

/** Inputs of a network by name. */
export type Sample = Readonly<Record<string, Tensor>>;

export interface SampleSource {
  /**
   * Folder of KServe v2 requests (`.json`), or of recordings (any format the agent reads) for a featurizer.
   */
  readonly folder: string;
  /** Model that computes the network's inputs from audio. */
  readonly features?: string;
  /** Number of samples, spread evenly over the folder. */
  readonly count?: number;
}

export interface Samples {
  readonly count: number;
  /** Yields each sample; an unreadable one ends the sequence with a problem. */
  read(): AsyncGenerator<BuildResult<Sample>>;
  close(): Promise<void>;
}

/** Opens the samples of a folder, in the order of their names. */
export async function openSamples({ folder, features, count }: SampleSource): Promise<BuildResult<Samples>> {
  const listed = await readdir(folder).catch(() => undefined);
  if (!listed) return problem('unreadable', `${folder} cannot be read`);
  const kind = features === undefined ? /\.json$/ : /\.(wav|flac|opus|ogg|mp3)$/;
  const all = listed.filter((name) => kind.test(name)).sort();
  if (all.length === 0) {
    return problem(
      'unreadable',
      `${folder} has no samples: requests (.json), or with --features the recordings a featurizer takes`,
    );
  }
  const most = Math.min(count ?? CALIBRATION_SAMPLES_MAX, all.length);
  const chosen = Array.from({ length: most }, (_, at) => all[Math.floor((at * all.length) / most)] as string);
  const featurizer = features === undefined ? ok(undefined) : await openFeaturizer(features);
  if (!featurizer.ok) return featurizer;
  return ok({
    count: most,
    async *read() {
      for (const name of chosen) {
        const sample = await readSample(path.join(folder, name), featurizer.value);
        yield sample;
        if (!sample.ok) return;
      }
    },
    close: async () => featurizer.value?.close(),
  });
}

async function readSample(file: string, featurizer: Featurizer | undefined): Promise<BuildResult<Sample>> {
  const { size } = await stat(file);
  if (size > CALIBRATION_SAMPLE_BYTES) return problem('bound', `${file} has ${size} bytes`);
  if (featurizer) {
    const sound = await readSound(file);
    return sound.ok ? featurizer.compute(sound.value) : sound;
  }
  const request = decodeInferRequest(await readFile(file));
  if (!request.ok) return problem('unreadable', `${file}: ${request.refusal.reason}`);
  const sample: Record<string, Tensor> = {};
  for (const sent of request.value.inputs) {
    const tensor = tensorOf(sent);
    if (!tensor) return problem('unsupported', `${file}: ${sent.name} is ${sent.datatype}`);
    sample[sent.name] = tensor;
  }
  return ok(sample);
}

function tensorOf(sent: Sent): Tensor | undefined {
  if (sent.datatype === 'INT64') {
    const view = new DataView(sent.bytes.buffer, sent.bytes.byteOffset, sent.bytes.byteLength);
    const values = BigInt64Array.from({ length: sent.bytes.byteLength / 8 }, (_, at) => view.getBigInt64(8 * at, true));
    return new Tensor('int64', values, [...sent.shape]);
  }
  const read = sent.datatype === 'FP32' ? readFp32(sent) : sent.datatype === 'INT32' ? readInt32(sent) : undefined;
  return read?.ok ? new Tensor(read.value, [...sent.shape]) : undefined;
}

/** Reads audio as the agent does: one channel at 16 kHz. */
async function readSound(file: string): Promise<BuildResult<Float32Array>> {
  const mono = createMono();
  const parts: Float32Array[] = [];
  for await (const block of decodeSound(createReadStream(file))) {
    if (!block.ok) return problem('unreadable', `${file}: ${block.refusal.reason}`);
    parts.push(...mono.push(block.value));
  }
  return ok(joinSamples([...parts, mono.finish()]));
}
