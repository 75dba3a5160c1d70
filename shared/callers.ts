// Authentication of the edge and of agents at the functions.
//
// The edge: `authorization: Bearer <JWT>`, ES256, header `typ` as below and `kid` of EDGE_KEY, claims `iss`, `aud`,
// `iat`, `exp` (at most serviceTokenSeconds later) and `tenant`; another tenant's uploads are refused.
// `zones` lists the residency zones of the caller's token: uploads and projects of other zones are unknown to it. Without
// the claim, as an edge of an earlier version signs it, those of all zones of the functions are visible.
// For a caller that may see its own uploads and projects only, the header names the subject in `owner`, listed in `crit`
// (RFC 7515 §4.1.11): functions of a version that does not know it refuse the token.
//
// Calls that are no GET bear a deadline as well, milliseconds since 1970 by the clock of the edge. Functions refuse a call
// whose deadline has passed with `deadline_passed` when they receive it and right before its first durable write. After
// that write the work continues. A call without the header has no deadline.
//
// An agent: `authorization: Bearer <pool token>`, and in the body a proof: a compact JWS, ES256, signed by the key with
// `use: "sig"` of its attestation, header `typ` as below. It says which job it is for, so it cannot be used for another.
import { z } from 'zod';
import { ATTESTATION_CHARACTERS } from './seal/limits.ts';

export const EDGE_ISSUER = 'auricle-edge';
export const FUNCTIONS_AUDIENCE = 'auricle-functions';
export const OWNER_HEADER = 'owner';
export const DEADLINE_HEADER = 'x-auricle-deadline';
/** Id of the caller's request at the edge, for the log lines of both sides. */
export const REQUEST_HEADER = 'x-request-id';
export const SERVICE_TYPE = 'auricle-service+jwt';
export const PROOF_TYPE = 'auricle-agent-proof+jws';

export const agentProof = z.object({
  /** `jobKey` of the job. */
  job: z.string().max(128),
  /** Seconds since 1970; at most serviceTokenSeconds ago. */
  iat: z.number().int(),
  agent: z.string().min(1).max(63),
  /** The attestation token. */
  attestation: z.string().max(ATTESTATION_CHARACTERS),
});

export type AgentProof = z.infer<typeof agentProof>;
