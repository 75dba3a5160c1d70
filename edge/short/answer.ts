import { limits } from '../../shared/limits.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { openStream } from '../../shared/seal/streams.ts';
import { type AnswerEvent, answerEvent } from '../../shared/speech/transcript.ts';
import { late, type Surroundings, within } from '../clock.ts';
import type { Line } from '../pool/dial.ts';

const lost = (detail: string): Result<never> => no(refuse('pool_lost', undefined, detail));
const decoder = new TextDecoder('utf-8', { fatal: true });

/**
 * The events of an agent's answer, one at a time. Ends after `final` or `refusal`; anything else that ends it, silence
 * included, is the refusal `pool_lost`. One call of `next` at a time.
 */
export class Answer {
  readonly #records: ReturnType<typeof openStream>;
  readonly #surroundings: Surroundings;

  constructor(line: Line, surroundings: Surroundings) {
    this.#records = openStream(line.answer, line.opener);
    this.#surroundings = surroundings;
  }

  async next(): Promise<Result<AnswerEvent>> {
    const step = await within(this.#records.next(), limits.answerSilenceMs.value, this.#surroundings);
    if (step === late) return lost('silent for too long');
    if (step.done) return lost('the answer ended early');
    if (!step.value.ok) return lost(step.value.refusal.detail ?? 'the answer cannot be opened');
    const { plaintext, final } = step.value.value;
    let json: unknown;
    try {
      json = JSON.parse(decoder.decode(plaintext));
    } catch {
      return lost('an event is not JSON');
    }
    const event = answerEvent.safeParse(json);
    if (!event.success) return lost('an event has an unknown shape');
    const closes = event.data.type === 'final' || event.data.type === 'refusal';
    if (closes !== final) return lost('the final flag and the final event do not go together');
    return ok(event.data);
  }

  /** Reads to the end of the connection, so that it can serve again. Only after the last event. */
  async drain(): Promise<void> {
    const step = await within(this.#records.next(), limits.snapshotWaitMs.value, this.#surroundings).catch(() => late);
    if (step === late) this.close();
  }

  /** Hangs up. */
  close(): void {
    // An abandoned read keeps the generator busy; hanging up is then the work of the call's signal.
    this.#records.return(undefined).catch(() => {});
  }
}

/** The refusal an agent sent, as the caller may hear it. */
export const agentRefusal = ({ reason, params }: Extract<AnswerEvent, { type: 'refusal' }>): Refusal =>
  refuse(reason, params, 'from the agent');
