import { MiB } from '../bytes.ts';

/** One inference request, decompressed: the limit of the embedded engine, and Triton's default. */
export const INFER_BODY_BYTES = 64 * MiB;
/**
 * JSON of one message: it is parsed in one turn, some tens of milliseconds. Larger tensors go as binary data.
 */
export const INFER_JSON_BYTES = 4 * MiB;
/** Id of a request or sequence, or name of a tensor; engines copy them into every answer. */
export const INFER_NAME_CHARACTERS = 256;
/** First pause before a model that failed to load is loaded again: a file under copy is soon complete. */
export const MODEL_RELOAD_MS = 1_000;
/**
 * Longest pause between loads: a repaired model serves within a minute, and a broken one costs one attempt in
 * it.
 */
export const MODEL_RELOAD_MAX_MS = 60_000;
