import { createHash } from 'node:crypto';
import { z } from 'zod';
import { canonicalJson } from '../../../../shared/audit/canonical-json.ts';
import { MiB } from '../../../../shared/bytes.ts';
import { ENSEMBLE_STEPS_MAX } from '../../models/config/rules.ts';
import { enums } from '../../models/config/schema.ts';
import { MODEL_SOURCE_ENTRIES_MAX } from '../limits.ts';
import { cipherNames } from './cipher.ts';

/** One artifact of an archive: the longest that the length field of a plain tar can express. */
export const MODEL_ARTIFACT_BYTES = 8 * 1024 * MiB - 1;
/** Name of an artifact: the name field of a plain tar holds it with the folder before it. */
const MODEL_PATH_CHARACTERS = 90;

export const FORMAT = 'auricle-archive/1';

/** Names of artifacts, graphs and models, which become file names. */
export const nameShape = z
  .string()
  .max(MODEL_PATH_CHARACTERS)
  .regex(/^[A-Za-z0-9_][A-Za-z0-9._-]*(\/[A-Za-z0-9_][A-Za-z0-9._-]*)*$/, 'not a plain name');

const text = z.string().max(4096);
const dims = z.array(z.number().int()).max(16);
const dataType = z.enum(enums.DataType);
const tensor = z.strictObject({
  name: text,
  data_type: dataType,
  dims,
  /** Requests of different lengths share a batch, end to end (`allow_ragged_batch`). */
  ragged: z.literal(true).optional(),
});

/** A network with the facts that a server needs to run it. Field names are Triton's where it has one. */
const graph = z.strictObject({
  role: nameShape,
  /** The ONNX file, and the files that hold its weights beside it. */
  artifact: nameShape,
  external: z.array(nameShape).max(MODEL_SOURCE_ENTRIES_MAX),
  /** The first dimension of every tensor is the batch. */
  batched: z.boolean(),
  precision: z.enum(['fp32', 'fp16', 'int8']),
  input: z.array(tensor).max(256),
  output: z.array(tensor).max(256),
  batch_input: z
    .array(
      z.strictObject({
        kind: z.enum(enums.BatchInputKind),
        target_name: text,
        data_type: dataType,
        source_input: text,
      }),
    )
    .max(64),
  /** State of a sequence that the server stores between its requests. */
  state: z.array(z.strictObject({ input_name: text, output_name: text, data_type: dataType, dims })).max(256),
  /** Control tensors for a sequence's start, end and id. */
  control: z.array(z.strictObject({ name: text, kind: z.enum(enums.ControlKind), data_type: dataType })).max(8),
});

/** Composition of the graphs of a pipeline: one ensemble. */
const flow = z.strictObject({
  /** Empty for the pipeline itself; `stream` for its live half. */
  suffix: z.union([z.literal(''), nameShape]),
  input: z.array(tensor).max(64),
  output: z.array(tensor).max(64),
  step: z
    .array(z.strictObject({ role: nameShape, input_map: z.record(text, text), output_map: z.record(text, text) }))
    .min(1)
    .max(ENSEMBLE_STEPS_MAX),
});

const artifact = z.strictObject({
  name: nameShape,
  /** Stored size; for a sealed artifact that of ciphertext and tag. */
  bytes: z.number().int().min(0).max(MODEL_ARTIFACT_BYTES),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  /** Nonce of a sealed artifact, in hexadecimal. */
  nonce: z
    .string()
    .regex(/^[0-9a-f]+$/)
    .optional(),
});

/** Build options and their values. */
const settings = z.record(z.string().max(64), text);

export const headShape = z.strictObject({
  format: z.literal(FORMAT),
  kind: z.enum(['model', 'pipeline']),
  name: nameShape,
  /** Name of the pipeline, in the archive of one. */
  pipeline: z.string().max(64).optional(),
  /** Classes that the networks were trained as (`obj_cls`). */
  classes: z.array(z.string().max(256)).max(16),
  graphs: z.array(graph).max(64),
  flows: z.array(flow).max(8),
  settings,
  /** Artifacts by part: `vocabulary` → `tokens.txt`. */
  parts: z.record(z.string().max(64), nameShape),
});

export const manifestShape = z.strictObject({
  ...headShape.shape,
  seal: z.strictObject({ cipher: z.enum(cipherNames), check: z.string().regex(/^[0-9a-f]{32}$/) }).optional(),
  artifacts: z.array(artifact).max(MODEL_SOURCE_ENTRIES_MAX),
});

export type Head = z.infer<typeof headShape>;
export type Manifest = z.infer<typeof manifestShape>;
export type Graph = z.infer<typeof graph>;
export type Flow = z.infer<typeof flow>;
export type TensorFacts = z.infer<typeof tensor>;

/**
 * Returns the digest that binds every sealed artifact: without its key an archive cannot get another head.
 */
export function digestHead(of: Head): Uint8Array {
  const { format, kind, name, pipeline, classes, graphs, flows, settings: given, parts } = of;
  const plain = { format, kind, name, pipeline, classes, graphs, flows, settings: given, parts };
  return createHash('sha256').update(canonicalJson(plain)).digest();
}

export const encodeManifest = (manifest: Manifest): Uint8Array => Buffer.from(`${canonicalJson(manifest)}\n`);
