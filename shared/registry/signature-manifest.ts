// Signed manifest of a model: its files, as OpenSSF model signing 1.0 writes them, so that its own tools
// verify P-256 signatures. The SM3 variant differs in the algorithm's name only.
import { z } from 'zod';
import { ascii } from '../bytes.ts';
import { toHex } from '../hex.ts';
import { sm3 } from '../seal/sm3.ts';
import { sha256 } from '../sha256.ts';
import { revisionDigest } from './revision.ts';
import { type Derivation, made } from './rollout.ts';
import { STATEMENT_TYPE } from './signature-envelope.ts';
import type { HashName } from './signature-key.ts';
import { type Sla, sla } from './sla.ts';

/** Files or shards that a signature may list: its bundle stays one row of the table. */
const MODEL_FILES_MAX = 1_000;

const SIGNATURE_TYPE = 'https://model_signing/signature/v1.0';

/** A segment that is empty, `.` or `..`, or any backslash or control character, would leave the folder. */
const FILE_PATH = '^(?!(?:[\\s\\S]*/)?\\.{0,2}(?:/|$))[^\\\\\\u0000-\\u001f\\u007f-\\u009f]+$';

/** Path of a file below the folder of the model, with slashes. */
export const filePath = z.string().max(512).regex(new RegExp(FILE_PATH), 'no path below the folder of the model');

const hashName = z.enum(['sha256', 'sm3']);
const hex = z.string().regex(/^[0-9a-f]{64}$/);

const serialization = z.discriminatedUnion('method', [
  z.looseObject({
    method: z.literal('files'),
    hash_type: hashName,
    allow_symlinks: z.boolean().default(false),
    ignore_paths: z.array(z.string()).default([]),
  }),
  z.looseObject({
    method: z.literal('shards'),
    hash_type: hashName,
    shard_size: z.number().int().positive(),
    allow_symlinks: z.boolean().default(false),
    ignore_paths: z.array(z.string()).default([]),
  }),
]);

const resource = z.object({ name: filePath, algorithm: hashName, digest: hex });

const signatureStatement = z.looseObject({
  _type: z.literal(STATEMENT_TYPE),
  subject: z.array(z.looseObject({ name: z.string(), digest: z.record(z.string(), hex) })).length(1),
  predicateType: z.literal(SIGNATURE_TYPE),
  predicate: z.looseObject({
    serialization,
    resources: z.array(resource).min(1).max(MODEL_FILES_MAX),
    /** Extension: the revision that these files make. Verifiers of the format ignore unknown members. */
    revision: revisionDigest.optional(),
    /** Extension: the promise, and the source of a derived revision. */
    sla: sla.optional(),
    made: made.optional(),
  }),
});

/** A piece of a file, or all of it. */
export interface Piece {
  readonly file: string;
  /** Byte range; the whole file when it is signed whole. */
  readonly from: number;
  readonly to: number | undefined;
  readonly digest: string;
}

export interface Manifest {
  readonly name: string;
  readonly hash: HashName;
  readonly method: 'files' | 'shards';
  readonly ignored: readonly string[];
  /** Ordered by file and, within a file, by offset. */
  readonly pieces: readonly Piece[];
  readonly revision: string | undefined;
  readonly sla?: Sla | undefined;
  readonly made?: Derivation | undefined;
}

const fromHex = (text: string): Uint8Array =>
  Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));

const hashes = { sha256, sm3 } as const;

const rootOf = (hash: HashName, digests: readonly string[]): string => toHex(hashes[hash](...digests.map(fromHex)));

/** Reads a statement; `undefined` when it is no manifest or is inconsistent. */
export function readManifest(statement: unknown): Manifest | undefined {
  const parsed = signatureStatement.safeParse(statement);
  if (!parsed.success) return undefined;
  const [subject] = parsed.data.subject;
  const { serialization: how, resources, revision, sla: promised, made: lineage } = parsed.data.predicate;
  const { hash_type: hash, method, ignore_paths: ignored } = how;
  const digests = resources.map(({ digest }) => digest);
  if (!subject || subject.digest[hash] !== rootOf(hash, digests)) return undefined;
  if (resources.some(({ algorithm }) => algorithm !== hash)) return undefined;
  const pieces = resources.map(({ name, digest }) => readPiece(name, digest, method));
  if (!pieces.every((one) => one !== undefined) || !areWhole(pieces)) return undefined;
  return {
    ...{ name: subject.name, hash, method, ignored, pieces, revision },
    ...(promised && { sla: promised }),
    ...(lineage && { made: lineage }),
  };
}

function readPiece(name: string, digest: string, method: Manifest['method']): Piece | undefined {
  if (method === 'files') return { file: name, from: 0, to: undefined, digest };
  const [, file, from, to] = /^(.+):(\d{1,15}):(\d{1,15})$/.exec(name) ?? [];
  if (file === undefined || Number(from) > Number(to)) return undefined;
  return { file, from: Number(from), to: Number(to), digest };
}

/** Checks that no file occurs twice and that shards are contiguous from byte 0: a gap would be unsigned. */
function areWhole(pieces: readonly Piece[]): boolean {
  const ends = new Map<string, number | undefined>();
  return pieces.every(({ file, from, to }) => {
    const whole = ends.has(file) ? to !== undefined && ends.get(file) === from : from === 0;
    ends.set(file, to);
    return whole;
  });
}

export interface FileDigest {
  readonly name: string;
  readonly digest: string;
}

interface WholeFiles extends Pick<Manifest, 'sla' | 'made'> {
  readonly name: string;
  readonly hash: HashName;
  readonly files: readonly FileDigest[];
  readonly revision: string;
}

/** Returns the statement about whole files, as bytes to be signed. */
export function writeManifest({ name, hash, files, revision, sla: promised, made: lineage }: WholeFiles): Uint8Array {
  const sorted = [...files].sort((one, other) => (one.name < other.name ? -1 : 1));
  const statement = {
    _type: STATEMENT_TYPE,
    subject: [
      {
        name,
        digest: {
          [hash]: rootOf(
            hash,
            sorted.map(({ digest }) => digest),
          ),
        },
      },
    ],
    predicateType: SIGNATURE_TYPE,
    predicate: {
      serialization: { method: 'files', hash_type: hash, allow_symlinks: false, ignore_paths: SIGNATURE_FILES },
      resources: sorted.map(({ name: file, digest }) => ({ name: file, algorithm: hash, digest })),
      revision,
      ...(promised && { sla: promised }),
      ...(lineage && { made: lineage }),
    },
  };
  return ascii(JSON.stringify(statement));
}

/** Signature files in the folder of a model, which the signature cannot cover. */
export const SIGNATURE_FILES = ['model.sig', 'model.sm2.sig'];
