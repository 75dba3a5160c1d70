// Files of revisions in the model store, below `/api` of the functions:
//
//  POST /models/{model}/revisions/{revision}/files   newFiles → filePlan: what is missing, and where to write it
//  GET  /models/{model}/revisions/{revision}/files   → fileList
//  POST /agents/models                               sentFileRequest of an agent → fileAddresses
//
// A file is stored once, under the SHA-256 of its bytes, whichever revisions contain it. The functions hash each
// upload and copy it into the store, where no address writes.
import { z } from 'zod';
import { toHex } from '../hex.ts';
import { sha256 } from '../sha256.ts';
import { modelName, revisionDigest } from './revision.ts';
import { bundle } from './signature-bundle.ts';
import { filePath } from './signature-manifest.ts';

/** Files of one revision: a row of the table names them all. */
export const MODEL_FILES_MAX = 500;
/** 16 GiB, which a function hashes within its timeout (30 minutes, functions/host.json) at 10 MB/s. */
export const MODEL_FILE_BYTES_MAX = 16 * 2 ** 30;
/** Validity of an address for writing: a revision of 100 GiB at 40 Mbit/s. */
export const MODEL_WRITE_MS = 6 * 3_600_000;
/** Validity of an address for reading, which agents renew when a download resumes. */
export const MODEL_READ_MS = 900_000;
/** Bytes of an agent's signed request. */
const REQUEST_BYTES_MAX = 1_024;
const PROOF_BYTES_MAX = 32_768;
/** JSON of `sentFileRequest`, with room for escapes. */
export const FILE_REQUEST_BYTES_MAX = 2 * REQUEST_BYTES_MAX + PROOF_BYTES_MAX + 64;

/** SHA-256 of a file in hex. */
export const fileDigest = z.string().regex(/^[0-9a-f]{64}$/);

const size = z.number().int().nonnegative().max(MODEL_FILE_BYTES_MAX);

/** A file of a revision; `name` is its path in the model repository, with `/`. */
export const modelFile = z.object({ name: filePath, digest: fileDigest, bytes: size });
export type ModelFile = z.infer<typeof modelFile>;

export const newFiles = z.object({ files: z.array(modelFile).min(1).max(MODEL_FILES_MAX) });

/** Progress of a file: to be written, written and not yet hashed, or stored. */
export const fileState = z.enum(['missing', 'hashing', 'stored']);

export const filePlan = z.object({
  revision: revisionDigest,
  complete: z.boolean().describe('The store has every file'),
  files: z.array(
    z.object({
      digest: fileDigest,
      bytes: size,
      state: fileState,
      url: z.string().optional().describe('Address that writes this file and nothing else, where it is missing'),
    }),
  ),
  headers: z.record(z.string(), z.string()).describe('Headers of the writes'),
  expires: z.number().int().describe('End of the addresses, ms since 1970'),
});
export type FilePlan = z.infer<typeof filePlan>;

export const fileList = z.object({
  revision: revisionDigest,
  complete: z.boolean().describe('The store has every file; a revision without its files opens no gate'),
  files: z.array(modelFile.extend({ state: fileState.optional().describe('Absent where the functions are older') })),
});
export type FileList = z.infer<typeof fileList>;

/** Request of an agent for the files of one revision; the proof covers the exact characters of `request`. */
export const sentFileRequest = z.object({
  request: z.string().max(REQUEST_BYTES_MAX),
  proof: z.string().max(PROOF_BYTES_MAX),
});
export const fileRequest = z.object({ v: z.literal(1), model: modelName, revision: revisionDigest });

/** Returns the `job` claim of the proof of a request for files. */
export const fileProofOf = (request: string): string => `files ${toHex(sha256(new TextEncoder().encode(request)))}`;

/** Answer to an agent, which verifies `bundle` itself before it trusts the list of files. */
export const fileAddresses = z.object({
  revision: revisionDigest,
  expires: z.number().int().describe('End of the addresses, ms since 1970'),
  bundle: bundle.describe('Signature of the files'),
  files: z.array(
    modelFile.extend({
      url: z.string().optional().describe('Address that reads the file; absent while it is archived'),
      expected: z
        .number()
        .int()
        .optional()
        .describe('Time by which an archived file is expected back, ms since 1970; its return has priority'),
    }),
  ),
});
export type FileAddresses = z.infer<typeof fileAddresses>;
