import { type AgentProof, PROOF_TYPE } from '../../../shared/upload/callers.ts';
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

/** Asks the functions in the name of this agent. `job` says what the proof is for; it goes into the body with the rest. */
export async function callFunctions(
  { url, agent, keys, token, now }: FunctionsOptions,
  path: string,
  job: string,
  rest: Readonly<Record<string, unknown>>,
  withinMs: number,
): Promise<Response> {
  const proof: AgentProof = { job, iat: Math.floor(now() / 1_000), agent, attestation: keys.current().token };
  return fetch(new URL(path, url), {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token()}` },
    body: JSON.stringify({ ...rest, proof: await keys.sign(proof, PROOF_TYPE) }),
    signal: AbortSignal.timeout(withinMs),
  });
}
