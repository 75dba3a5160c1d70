// Moves that the functions sign, for a caller or a verdict: withdrawal and retirement, which have no gate.
import type { TransitionRow } from '../../shared/registry/contract.ts';
import type { Registry } from '../../shared/registry/registry.ts';
import { signPayload } from '../../shared/registry/signature-envelope.ts';
import type { SigningKey } from '../../shared/registry/signature-key.ts';
import { type GateStatement, writeStatement } from '../../shared/registry/statement.ts';
import type { Result } from '../../shared/result.ts';
import type { ModelContext } from './model-context.ts';
import { moveRevision } from './move-revision.ts';

type Move = Pick<GateStatement, 'model' | 'revision' | 'to' | 'reason' | 'evidence'>;

/** Signs and applies a move. `found`: the revision's current state. */
export async function moveAsFunctions(
  context: ModelContext,
  key: SigningKey,
  found: Pick<Registry['revisions'][string], 'standing' | 'since'>,
  move: Move,
): Promise<Result<TransitionRow>> {
  // Clocks differ: a statement must not predate the stage it is about.
  const payload = writeStatement({ ...move, from: found.standing, at: Math.max(context.now(), found.since) });
  return moveRevision(context, move.model, await signPayload(payload, key));
}
