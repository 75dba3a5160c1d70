import { type Refusal, refuse } from '../../../../shared/refusal.ts';
import { no, type Result } from '../../../../shared/result.ts';
import type { Opener, Sealer } from '../../../../shared/seal/records.ts';
import type { LinkControl } from '../../../../shared/stream/link.ts';
import { decodeLinkRecord } from '../../../../shared/stream/link-record.ts';
import type { Detector } from '../asr/detect-language.ts';
import type { ServedModel } from '../models/served-model.ts';
import type { Ticket } from '../request/ticket.ts';
import { bugFields, type Log } from '../telemetry/log.ts';
import { type Link, SocketLink } from './link.ts';
import type { LiveParts } from './parts.ts';
import { openSession, type Session } from './session.ts';
import type { StreamSocket } from './web-socket.ts';

/** Longest silence of an agent on an open stream; then it sends a keepalive. */
export const STREAM_KEEPALIVE_MS = 2_000;
/** Longest wait for the first record of a link; an edge sends it at once. */
const STREAM_OPEN_MS = 10_000;

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
  readonly detector?: Detector | undefined;
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
export const serveStream = (parts: StreamParts): Promise<Result<undefined>> => new ServedStream(parts).outcome;

class ServedStream {
  readonly outcome: Promise<Result<undefined>>;
  readonly #parts: StreamParts;
  readonly #link: Link;
  readonly #cancel = new AbortController();
  readonly #settle: (outcome: Result<undefined>) => void;
  readonly #stopDeadline: () => void;
  readonly #stopOpening: () => void;
  #session: Session | undefined;
  #opened = false;

  constructor(parts: StreamParts) {
    const { context, ticket, stopped } = parts;
    const { clock } = context.live;
    const { promise, resolve } = Promise.withResolvers<Result<undefined>>();
    this.outcome = promise;
    this.#settle = resolve;
    this.#parts = parts;
    this.#link = new SocketLink({
      ...{ socket: parts.socket, opener: parts.opener, sealer: parts.sealer, clock },
      keepaliveMs: Math.min(context.keepaliveMs, STREAM_KEEPALIVE_MS),
      onRecord: (plaintext, final) => this.#onRecord(plaintext, final),
      onBroken: (refusal) => this.#end(refusal),
      onGone: () => this.#end(refuse('pool_lost', undefined, 'edge connection closed')),
      onBug: (error) => {
        context.log('bug', bugFields(error));
        this.#end(refuse('internal'));
      },
    });
    this.#stopDeadline = clock.after(ticket.deadlineMs, () => this.#end(refuse('deadline_passed')));
    this.#stopOpening = clock.after(STREAM_OPEN_MS, () => this.#end(broken('no open')));
    stopped.addEventListener('abort', this.#onStop, { once: true });
  }

  readonly #onStop = () => this.#end(refuse('pool_busy', undefined, 'agent stops'));
  readonly #onDrain = () => this.#link.send({ type: 'drain' });

  /** Ends the stream once: the first refusal causes all later ones. */
  #end(refusal: Refusal): void {
    if (this.#cancel.signal.aborted) return;
    const { reason, params } = refusal;
    this.#link.send({ type: 'refusal', reason, ...(params && { params: { ...params } }) });
    this.#close(no(refusal));
  }

  #close(outcome: Result<undefined>): void {
    const { draining, stopped } = this.#parts;
    this.#cancel.abort();
    this.#stopDeadline();
    this.#stopOpening();
    stopped.removeEventListener('abort', this.#onStop);
    draining.removeEventListener('abort', this.#onDrain);
    this.#session?.free();
    this.#settle(outcome);
  }

  async #open(control: LinkControl | undefined): Promise<void> {
    if (this.#opened || control?.type !== 'open') return this.#end(broken('open comes first'));
    this.#opened = true;
    this.#stopOpening();
    const { context, ticket, model, detector, draining } = this.#parts;
    const { live, agent, onUtterance } = context;
    const { signal } = this.#cancel;
    const onRefusal = (refusal: Refusal) => this.#end(refusal);
    const made = await openSession(
      { live, agent, ticket, model, detector, link: this.#link, signal, onRefusal, onUtterance },
      control,
    );
    if (!made.ok) return this.#end(made.refusal);
    this.#session = made.value;
    if (signal.aborted) return this.#session.free();
    if (draining.aborted) this.#onDrain();
    else draining.addEventListener('abort', this.#onDrain, { once: true });
  }

  #onRecord(plaintext: Uint8Array, final: boolean): Promise<void> | undefined {
    if (this.#cancel.signal.aborted) return undefined;
    const message = decodeLinkRecord(plaintext);
    if (!message.ok) return void this.#end(message.refusal);
    const control = message.value.kind === 'control' ? message.value.control : undefined;
    if (final !== (control?.type === 'end')) return void this.#end(broken('end and final flag belong together'));
    const session = this.#session;
    if (!session) return this.#open(control);
    if (final) return session.end().then((taken) => this.#onTaken(taken, true));
    const taken = session.take(message.value);
    return taken instanceof Promise ? taken.then((result) => this.#onTaken(result)) : void this.#onTaken(taken);
  }

  #onTaken(taken: Result<undefined>, final = false): void {
    if (this.#cancel.signal.aborted) return;
    if (!taken.ok) this.#end(taken.refusal);
    else if (final) this.#close(taken);
  }
}
