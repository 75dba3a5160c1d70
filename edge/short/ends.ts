import { type Refusal, refusals } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { refuseThrown } from '../bug.ts';
import type { RequestContext } from '../context.ts';
import type { CallerBody } from './body.ts';
import type { Relay } from './relay.ts';
import { CLIENT_GONE, type Ending, refusedWith, type Session } from './session.ts';

type Used = NonNullable<Ending['final']>;

/** How a request ends, whoever renders its answer. One of `end`, `broke` and `abandon` is called; the first counts. */
export interface Ends {
  /** From now on the caller sees the answer. */
  deliver(): void;
  /**
   * The work is done or refused. `judge` may still forbid a result that is there. A refusal when the result must not
   * leave.
   */
  end<T extends Used>(
    outcome: Result<T>,
    judge?: (final: T) => Result<undefined>,
  ): Result<undefined> | Promise<Result<undefined>>;
  /** A bug ended the work. The refusal is what the caller gets. */
  broke(error: unknown): Promise<Refusal>;
  /** The caller went away in the middle. */
  abandon(): void;
}

/** The ends that a relay and its session have together: hung up, recorded, and the place given back. */
export function joinEnds<E extends { readonly type: string }>(
  relay: Relay<E>,
  session: Session,
  body: CallerBody,
  context: RequestContext,
): Ends {
  const ending = () => ({ agent: relay.agent, bytes: body.received });
  let abandoned = false;
  return {
    deliver: () => {
      relay.delivered = true;
    },
    end(outcome, judge = () => ok(undefined)) {
      relay.close(outcome.ok ? 'served' : outcome.refusal.reason);
      if (!outcome.ok) {
        if (!abandoned) logFailure(context.id, outcome.refusal, relay.agent);
        return session.end({ ...refusedWith(outcome.refusal), ...ending() }).then(() => ok(undefined));
      }
      const judged = judge(outcome.value);
      if (!judged.ok) {
        const ended = session.end({ ...refusedWith(judged.refusal), final: outcome.value, ...ending() });
        return ended.then(() => judged);
      }
      const settled = session.end({ status: 200, final: outcome.value, ...ending() });
      if (session.claims.audit === 'buffered') return ok(undefined);
      const unrecorded = () => context.recorder.refusal(session.claims, 'the end could not be recorded');
      return settled.then((recorded) => (recorded ? ok(undefined) : no(unrecorded())));
    },
    async broke(error) {
      const refusal = refuseThrown(context.id, error);
      try {
        relay.close(refusal.reason);
      } finally {
        await session.end({ ...refusedWith(refusal), ...ending() });
      }
      return refusal;
    },
    abandon() {
      abandoned = true;
      relay.close(CLIENT_GONE.reason);
      void session.end({ ...CLIENT_GONE, ...ending() });
    },
  };
}

/** One line for what is ours to mend; a caller's own mistakes are in the record only. Details never hold content. */
function logFailure(request: string, { reason, detail }: Refusal, agent: string | undefined): void {
  if (refusals[reason].status >= 500) console.warn(JSON.stringify({ event: 'failed', request, reason, detail, agent }));
}
