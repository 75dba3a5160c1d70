// Reader of agents' calls: the pool token is verified before a byte of the body is read, and the proof before the
// signed part is used.
import type { HttpRequest } from '@azure/functions';
import type { z } from 'zod';
import { jsonOf } from '../../shared/json-text.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { readText } from '../http/read-text.ts';
import { type AgentCaller, type AgentSettings, verifyPool, verifyProof } from './agent-caller.ts';

interface AgentContext {
  readonly settings: AgentSettings;
  /** Milliseconds since 1970. */
  now(): number;
}

/** Shape of a call's body. */
interface AgentBody<Sent> {
  readonly schema: z.ZodType<Sent>;
  readonly bytesMax: number;
  /** Returns the `job` claim that the proof must have. */
  jobOf(sent: Sent): string;
}

export interface AgentCall<Sent> {
  readonly sent: Sent;
  readonly caller: AgentCaller;
}

export async function readAgentCall<Sent extends { readonly proof: string }>(
  request: HttpRequest,
  { settings, now }: AgentContext,
  { schema, bytesMax, jobOf }: AgentBody<Sent>,
): Promise<Result<AgentCall<Sent>>> {
  const pool = await verifyPool(request.headers.get('authorization'), settings, now());
  if (!pool.ok) return pool;
  const text = await readText({ headers: request.headers, body: request.body }, bytesMax);
  const sent = schema.safeParse(text === undefined ? undefined : jsonOf(text));
  if (!sent.success) return no(refuse('json_invalid'));
  const agent = await verifyProof({ proof: sent.data.proof, job: jobOf(sent.data) }, settings, now());
  return agent.ok ? ok({ sent: sent.data, caller: { agent: agent.value, ...pool.value } }) : agent;
}
