import { limits } from '../../shared/limits.ts';
import type { Attempt } from '../../shared/pool/pick.ts';
import { readTranscriptEvent } from '../../shared/speech/read-event.ts';
import type { Claims } from '../../shared/tenant/claims.ts';
import { late, within } from '../clock.ts';
import type { RequestContext } from '../context.ts';
import { dial } from '../pool/dial.ts';
import { Answer } from './answer.ts';

/** A recording that was served, for a revision on trial. */
export interface Copy {
  readonly to: Attempt;
  readonly claims: Pick<Claims, 'tenant' | 'audit'>;
  readonly model: string;
  /** Record 0, as it was for the agent that served. */
  readonly head: Readonly<Record<string, unknown>>;
  readonly body: readonly Uint8Array[];
  /** What was served. */
  readonly text: string;
  /** Whether the record of the request is durable; `undefined` while it has no end. */
  readonly recorded: () => Promise<boolean> | undefined;
}

/** Copies on their way from this isolate. A request that is dropped in the middle takes its `finally` along, in time. */
let sending: number[] = [];

/** Whether there is room for one more. */
export function hasRoomForCopy(now: number): boolean {
  sending = sending.filter((until) => until > now);
  return sending.length < limits.mirrorsAtOnce.value;
}

/** Sends it when the caller has been served, and forgets the answer. Nothing of it is booked, and no failure is told. */
export async function sendCopy(copy: Copy, { id, settings, surroundings }: RequestContext): Promise<void> {
  const until = surroundings.now() + limits.mirrorMs.value;
  sending.push(until);
  const hangUp = new AbortController();
  try {
    await surroundings.after(limits.mirrorDelayMs.value).rings;
    // What must be on record before anything leaves must be before this, too.
    if (copy.claims.audit === 'strict' && !(await copy.recorded())) return;
    const { entry } = copy.to;
    const { agent } = entry.description;
    const facts = { id: `${id}.copy`, agent, tenant: copy.claims.tenant, class: 'batch', model: copy.model };
    const head = { ...copy.head, mirror: { text: copy.text } };
    const call = { entry, facts, head, body: copy.body, signal: hangUp.signal };
    const asked = dial(call, settings, surroundings).then(async (line) => {
      if (!line.ok) return;
      const answer = new Answer(line.value, readTranscriptEvent, surroundings);
      for (;;) {
        const event = await answer.next();
        if (!event.ok || event.value.type === 'final' || event.value.type === 'refusal') break;
      }
      await answer.drain();
    });
    if ((await within(asked, limits.mirrorMs.value, surroundings)) === late) hangUp.abort();
  } catch {
    // Whatever it was: it is the agent on trial that counts what it does.
  } finally {
    const at = sending.indexOf(until);
    if (at >= 0) sending.splice(at, 1);
  }
}
