import type { Result } from '../../../../shared/result.ts';
import type { Opened } from '../../../../shared/seal/records.ts';
import type { Span } from '../../../../shared/trace/span.ts';
import type { Tally } from '../live-counts/tally.ts';
import type { ServedModel } from '../models/served-model.ts';
import type { AgentContext } from './agent-context.ts';
import type { Answer } from './answer.ts';
import type { Facts } from './ticket.ts';

/** One short request that was let in, before its head was read. */
export interface AdmittedRequest {
  readonly context: AgentContext;
  readonly ticket: Facts;
  readonly model: ServedModel;
  readonly answer: Answer;
  readonly records: AsyncGenerator<Result<Opened>>;
  readonly signal: AbortSignal;
  readonly deadline: number;
  readonly tally: Tally;
  /** Span of the request; absent where it is in no trace. */
  readonly span?: Span | undefined;
  /** Called when the engine begins to work on the request. */
  readonly onStart?: (() => void) | undefined;
}

/** An admitted request with its head, JSON of any shape. */
export interface AgentRequest extends AdmittedRequest {
  readonly head: unknown;
}
