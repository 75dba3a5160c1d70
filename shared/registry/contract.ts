// Calls of the edge, on behalf of operators, to the functions about models, below `/api`:
//
//  GET  /models                                 → modelNames
//  POST /models/{model}/revisions               newRevision → revisionRow
//  GET  /models/{model}/revisions/{revision}    → keptRevision, with its signature
//  DELETE /models/{model}/revisions/{revision}  → transitionRow: retired, signed by the functions for the caller
//  GET  /models/{model}/revisions/{revision}/evidence → liveEvidence of the revision
//  GET  /models/{model}                         ?at= → modelState: now, or at a time
//  POST /models/{model}/transitions             newTransition → transitionRow; 202 while a signature is missing
//  GET  /models/{model}/transitions             ?after= → logPage: every entry of the log, the oldest first
//  GET  /models/{model}/transitions/{id}        → keptTransition, with the signed statement
//  PUT  /models/{model}/aliases/{alias}         aliasMove → aliasRow
//  GET  /names                                  → nameList
//  POST /names                                  nameMove → nameRow
import { z } from 'zod';
import { tenantName } from '../names.ts';
import { evidence } from './evidence.ts';
import { MODEL_REASON_CHARACTERS } from './limits.ts';
import { namedModel, requestedModel } from './names.ts';
import { entry } from './registry.ts';
import { modelName, revisionDigest } from './revision.ts';
import { MODEL_PROPERTIES_MAX, made, rollout } from './rollout.ts';
import { bundle } from './signature-bundle.ts';
import { envelope } from './signature-envelope.ts';
import { sla } from './sla.ts';
import { canaryShare, stage, standing } from './stage.ts';
import { verdict } from './verdict.ts';

/** Properties of a revision for people; no decision depends on them. */
export const description = z
  .record(z.string().min(1).max(64), z.string().max(512))
  .refine((all) => Object.keys(all).length <= MODEL_PROPERTIES_MAX, 'has too many members');

export const newRevision = z.object({ bundle, description: description.default({}) });

export const revisionRow = z.object({
  revision: revisionDigest,
  author: z.string().describe('Signer of the files'),
  authors: z.array(z.string()).optional().describe('Other signers of the same files'),
  registered: z.number().int(),
  stage,
  share: canaryShare.optional().describe('Share of the sessions, in the stage canary'),
  since: z.number().int().describe('Time of arrival at the stage'),
  aliases: z.array(z.string()),
  sla: sla.optional().describe('Promise signed by the author'),
  made: made
    .omit({ parameters: true })
    .optional()
    .describe('Source revision and method, if made from another revision'),
  rollout: rollout.optional().describe('Rollout after a missed promise'),
});
export type RevisionRow = z.infer<typeof revisionRow>;

export const storedRevision = revisionRow.extend({ bundle, description });
export type StoredRevision = z.infer<typeof storedRevision>;

export const aliasRow = z.object({
  alias: z.string(),
  revision: revisionDigest.optional(),
  since: z.number().int(),
  before: revisionDigest.optional().describe('The revision it named before; the target of a rollback'),
});
export type AliasRow = z.infer<typeof aliasRow>;

export const modelState = z.object({
  model: z.string(),
  seq: z.number().int().describe('Last entry of its log'),
  at: z.number().int(),
  revisions: z.array(revisionRow),
  aliases: z.array(aliasRow),
});
export type ModelState = z.infer<typeof modelState>;

/** Names of all registered models. */
export const modelNames = z.object({
  models: z.array(z.object({ model: z.string(), stable: revisionDigest.optional() })),
});

/**
 * Live evidence of a revision: what a gate would weigh while it is on trial, and latency windows in any
 * stage.
 */
export const liveEvidence = z.object({
  revision: revisionDigest,
  stage,
  share: canaryShare.optional(),
  since: z.number().int(),
  evidence: z.array(evidence).describe('Evidence as a statement carries it; empty outside grey and canary'),
  verdicts: z.partialRecord(z.string(), verdict).describe('Verdict of each kind of evidence'),
  verdict: verdict.optional().describe('Verdict of all evidence: FAIL moves the revision back, PASS opens its gate'),
  windows: z
    .array(
      z.object({
        from: z.number().int(),
        to: z.number().int(),
        streams: z.number().int(),
        failed: z.number().int(),
        p95: z.number().optional().describe('95th percentile, milliseconds for a second of audio'),
      }),
    )
    .describe('Windows of served traffic, oldest first'),
});
export type LiveEvidence = z.infer<typeof liveEvidence>;

export const newTransition = z.object({ envelope });

export const transitionRow = z.object({
  id: z.string().describe('SHA-256 of the signed statement'),
  revision: revisionDigest,
  from: standing,
  to: standing,
  signers: z.array(z.string()),
  missing: z.number().int().describe('Number of missing signatures; 0 when the revision has moved'),
  seq: z.number().int().optional().describe('Its entry of the log'),
  missed: z.string().optional().describe('Missed promise, and the action taken'),
});
export type TransitionRow = z.infer<typeof transitionRow>;

export const storedTransition = transitionRow.extend({ envelope });
export type StoredTransition = z.infer<typeof storedTransition>;

export const aliasMove = z.object({
  revision: revisionDigest.optional().describe('Absent: removes the alias'),
  from: revisionDigest.optional().describe('Revision that the alias names now, for compare-and-set'),
  reason: z.string().max(MODEL_REASON_CHARACTERS).optional(),
});

export const logPage = z.object({ entries: z.array(entry), next: z.number().int().optional() });

export const nameList = z.object({ names: z.array(namedModel) });

/** Further names in one request: those that a client library knows, each an entry of the log. */
const NAMES_MOVED_MAX = 32;

export const nameMove = z.object({
  name: requestedModel.describe('`default` serves requests that name no model'),
  others: z
    .array(requestedModel)
    .max(NAMES_MOVED_MAX)
    .optional()
    .describe('Further names that move likewise, in order, up to the first that is refused'),
  tenant: tenantName.optional().describe('Absent: for the whole fleet'),
  model: modelName.optional().describe('Absent: removes the name'),
  from: modelName.optional().describe('Model that the name has now, for compare-and-set'),
  reason: z.string().max(MODEL_REASON_CHARACTERS).optional(),
});
export type NameMove = z.infer<typeof nameMove>;

export const nameRow = namedModel.partial({ model: true });
