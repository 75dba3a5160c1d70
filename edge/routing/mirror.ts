import { Limiter, type Slot } from '../../shared/limiter.ts';
import type { Claims } from '../../shared/tenant/claims.ts';
import { late, within } from '../clock.ts';
import type { RequestContext } from '../context.ts';
import { Answer } from './answer.ts';
import { dial } from './dial.ts';
import { readTranscriptEvent } from './read-event.ts';
import type { Attempt } from './route.ts';

/**
 * Concurrent copies of an isolate, each of at most BUFFERED_BODY_BYTES; further requests are not mirrored.
 */
const MIRRORS_MAX = 4;
/** Longest call of a copy, whose answer no caller waits for. */
const MIRROR_MS = 30_000;
/** Delay of a copy after the served answer: the caller comes first. */
const MIRROR_DELAY_MS = 50;

/** A copy of a served recording for a revision on trial. */
export interface Mirror {
  readonly to: Attempt;
  readonly slot: Slot;
  readonly claims: Pick<Claims, 'tenant' | 'audit'>;
  readonly model: string;
  /** Head of the request that was served. */
  readonly head: Readonly<Record<string, unknown>>;
  readonly body: readonly Uint8Array[];
  /** The transcript that was served. */
  readonly text: string;
  /** Reports whether the record of the request is durable; `undefined` while the request has no end. */
  readonly recorded: () => Promise<boolean> | undefined;
}

/** Copies in flight. */
const mirrors = new Limiter(MIRRORS_MAX, MIRROR_MS);

/** Takes a slot for another copy, if there is one. */
export const enterMirror = (now: number): Slot | undefined => mirrors.enter('', now);

/** Sends a copy after the caller was served and discards the answer. The agent on trial counts its own failures. */
export async function sendMirror(mirror: Mirror, context: RequestContext): Promise<void> {
  const { runtime } = context;
  const hangUp = new AbortController();
  try {
    await runtime.after(MIRROR_DELAY_MS).rings;
    // A strict tenant's record is durable before anything leaves.
    if (mirror.claims.audit === 'strict' && !(await mirror.recorded())) return;
    const sent = send(mirror, hangUp.signal, context);
    if ((await within(sent, MIRROR_MS, runtime)) === late) hangUp.abort();
  } catch {
    // Counted by the agent.
  } finally {
    mirror.slot.leave();
  }
}

async function send(
  { to, claims, model, head, body, text }: Mirror,
  signal: AbortSignal,
  { id, settings, runtime }: RequestContext,
): Promise<void> {
  const { entry } = to;
  const { agent } = entry.description;
  const { revision } = to.model;
  const facts = { id: `${id}.copy`, agent, tenant: claims.tenant, class: 'batch', model, revision };
  const call = { entry, facts, head: { ...head, mirror: { text } }, body, signal };
  const dialled = await dial(call, settings, runtime);
  if (!dialled.ok) return;
  const answer = new Answer(dialled.value, readTranscriptEvent, runtime);
  for (;;) {
    const event = await answer.next();
    if (!event.ok || event.value.type === 'final' || event.value.type === 'refusal') break;
  }
  await answer.drain();
}
