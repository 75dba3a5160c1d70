import { type AgentProof, PROOF_TYPE } from '../../../../shared/callers.ts';
import type { Keys } from './keys.ts';

export interface FunctionsOptions {
  /** Base URL of the functions. */
  readonly url: string;
  readonly agent: string;
  readonly keys: Pick<Keys, 'current' | 'sign'>;
  /** Reads the pool token at each question, so that it can be renewed underneath. */
  readonly token: () => string;
  readonly now: () => number;
}

export interface FunctionsCall {
  readonly path: string;
  /** Subject of the proof. */
  readonly job: string;
  /** Members of the body; the proof is added to them. */
  readonly body: Readonly<Record<string, unknown>>;
  readonly withinMs: number;
}

/** Calls the functions with the identity of this agent. */
export async function callFunctions(
  { url, agent, keys, token, now }: FunctionsOptions,
  { path, job, body, withinMs }: FunctionsCall,
): Promise<Response> {
  const proof: AgentProof = { job, iat: Math.floor(now() / 1_000), agent, attestation: keys.current().token };
  return fetch(new URL(path, url), {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token()}` },
    body: JSON.stringify({ ...body, proof: await keys.sign(proof, PROOF_TYPE) }),
    signal: AbortSignal.timeout(withinMs),
  });
}
