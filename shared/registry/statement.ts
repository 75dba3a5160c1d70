// Statement that moves a revision: in-toto, about the digest, with the evidence. It is signed as an envelope
// (signature/envelope); each signer vouches for all of it.
import { z } from 'zod';
import { ascii } from '../bytes.ts';
import { toHex } from '../hex.ts';
import { sha256 } from '../sha256.ts';
import { evidence } from './evidence.ts';
import { MODEL_REASON_CHARACTERS } from './limits.ts';
import { modelName, revisionDigest } from './revision.ts';
import { readPayload, STATEMENT_TYPE } from './signature-envelope.ts';
import { standing } from './stage.ts';

/** Pieces of evidence of one statement. */
const MODEL_EVIDENCE_MAX = 20;

const GATE_TYPE = 'urn:auricle:gate:v1';

const move = z.object({
  model: modelName,
  from: standing,
  to: standing,
  /** Time of writing, ms since 1970: evidence expires. */
  at: z.number().int().nonnegative(),
  reason: z.string().max(MODEL_REASON_CHARACTERS).optional(),
  evidence: z.array(evidence).max(MODEL_EVIDENCE_MAX),
});

const gateStatement = z.object({
  _type: z.literal(STATEMENT_TYPE),
  subject: z
    .array(z.object({ name: modelName, digest: z.object({ sha256: z.string().regex(/^[0-9a-f]{64}$/) }) }))
    .length(1),
  predicateType: z.literal(GATE_TYPE),
  predicate: move,
});

export interface GateStatement extends z.infer<typeof move> {
  readonly revision: string;
  /** SHA-256 of the signed bytes, in hex: equal statements have equal ids. */
  readonly id: string;
}

export function writeStatement({
  revision,
  ...predicate
}: z.infer<typeof move> & { readonly revision: string }): Uint8Array {
  const digest = { sha256: revisionDigest.parse(revision).slice('sha256:'.length) };
  const subject = [{ name: predicate.model, digest }];
  return ascii(JSON.stringify({ _type: STATEMENT_TYPE, subject, predicateType: GATE_TYPE, predicate }));
}

/** Reads a statement; `undefined` when it is invalid or its subject names another model. */
export function readStatement(payload: Uint8Array): GateStatement | undefined {
  const parsed = gateStatement.safeParse(readPayload(payload));
  if (!parsed.success) return undefined;
  const { subject, predicate } = parsed.data;
  const [one] = subject;
  if (!one || one.name !== predicate.model) return undefined;
  return { ...predicate, revision: `sha256:${one.digest.sha256}`, id: statementId(payload) };
}

export const statementId = (payload: Uint8Array): string => toHex(sha256(payload));
