import { limits } from '../../../../shared/limits.ts';
import { type Refusal, refuse } from '../../../../shared/refusal.ts';
import { no, type Result } from '../../../../shared/result.ts';
import type { Opener, Sealer } from '../../../../shared/seal/records.ts';
import type { LinkControl } from '../../../../shared/stream/link.ts';
import { decodeLinkRecord } from '../../../../shared/stream/link-record.ts';
import type { ServedModel } from '../desk.ts';
import { bugFields, type Log } from '../log.ts';
import type { Ticket } from '../ticket.ts';
import { openLink } from './link.ts';
import type { LiveParts } from './parts.ts';
import { openSession, type Session } from './session.ts';
import type { StreamSocket } from './web-socket.ts';

/** The process that carries a stream. */
export interface StreamContext {
  readonly agent: string;
  readonly keepaliveMs: number;
  readonly live: LiveParts;
  readonly log: Log;
  /** Receives the length of each utterance, in seconds. */
  readonly onUtterance: (seconds: number) => void;
}

export interface StreamParts {
  readonly context: StreamContext;
  readonly ticket: Ticket;
  readonly model: ServedModel;
  readonly sealer: Sealer;
  readonly opener: Opener;
  readonly socket: StreamSocket;
  /** Aborts when the agent begins to stop. */
  readonly draining: AbortSignal;
  /** Aborts when the agent cannot wait any longer. */
  readonly stopped: AbortSignal;
}

const broken = (detail: string): Refusal => refuse('seal_broken', undefined, `stream: ${detail}`);

/** Serves one admitted stream until its last event was sent or its socket has closed. Never rejects. */
export function serveStream(parts: StreamParts): Promise<Result<undefined>> {
  const { context, ticket, draining, stopped } = parts;
  const { clock } = context.live;
  const cancel = new AbortController();
  let session: Session | undefined;
  let opened = false;
  let settle: (outcome: Result<undefined>) => void = () => {};
  const settled = new Promise<Result<undefined>>((resolve) => {
    settle = resolve;
  });

  /** Ends the stream once: the first refusal causes all later ones. */
  function end(refusal: Refusal) {
    if (cancel.signal.aborted) return;
    const { reason, params } = refusal;
    link.send({ type: 'refusal', reason, ...(params && { params: { ...params } }) });
    close(no(refusal));
  }

  function close(outcome: Result<undefined>) {
    cancel.abort();
    late();
    unopened();
    stopped.removeEventListener('abort', onStop);
    draining.removeEventListener('abort', drain);
    session?.free();
    settle(outcome);
  }

  async function open(control: LinkControl | undefined): Promise<void> {
    if (opened || control?.type !== 'open') return end(broken('open comes first'));
    opened = true;
    unopened();
    const { model } = parts;
    const made = await openSession(
      {
        live: context.live,
        agent: context.agent,
        ticket,
        model,
        link,
        signal: cancel.signal,
        onRefusal: end,
        onUtterance: context.onUtterance,
      },
      control,
    );
    if (!made.ok) return end(made.refusal);
    session = made.value;
    if (cancel.signal.aborted) return session.free();
    if (draining.aborted) drain();
    else draining.addEventListener('abort', drain, { once: true });
  }

  const drain = () => link.send({ type: 'drain' });

  function onRecord(plaintext: Uint8Array, final: boolean): Promise<void> | undefined {
    if (cancel.signal.aborted) return undefined;
    const message = decodeLinkRecord(plaintext);
    if (!message.ok) return void end(message.refusal);
    const control = message.value.kind === 'control' ? message.value.control : undefined;
    if (final !== (control?.type === 'end')) return void end(broken('end and final flag belong together'));
    if (!session) return open(control);
    if (final) return session.end().then((taken) => onTaken(taken, true));
    const taken = session.take(message.value);
    return taken instanceof Promise ? taken.then((result) => onTaken(result)) : void onTaken(taken);
  }

  function onTaken(taken: Result<undefined>, final = false) {
    if (cancel.signal.aborted) return;
    if (!taken.ok) end(taken.refusal);
    else if (final) close(taken);
  }

  const link = openLink({
    socket: parts.socket,
    opener: parts.opener,
    sealer: parts.sealer,
    clock,
    keepaliveMs: Math.min(context.keepaliveMs, limits.streamKeepaliveMs.value),
    onRecord,
    onBroken: end,
    onGone: () => end(refuse('pool_lost', undefined, 'edge connection closed')),
    onBug(error) {
      context.log('bug', bugFields(error));
      end(refuse('internal'));
    },
  });
  const late = clock.after(ticket.deadlineMs, () => end(refuse('deadline_passed')));
  const unopened = clock.after(limits.streamOpenMs.value, () => end(broken('no open')));
  const onStop = () => end(refuse('pool_busy', undefined, 'agent stops'));
  stopped.addEventListener('abort', onStop, { once: true });
  return settled;
}
