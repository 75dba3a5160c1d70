import type { AuditEvent } from '../../shared/audit/event.ts';
import { limits } from '../../shared/limits.ts';
import { type Surroundings, within } from '../clock.ts';
import type { Bindings } from '../settings.ts';
import { mint } from './mint.ts';

/** Requests of this isolate that go on while their gates do not answer. A count, and nothing of anybody. */
let begun = 0;

type Attempt = Extract<AuditEvent, { type: 'inference.attempt' }>;

/** What happens to a strict tenant's events when its gate does not answer in time. Each step has a deadline of its own. */
export class Spares {
  readonly #spares: Bindings['SPARE'];
  readonly #waitMs: number;
  readonly #surroundings: Surroundings;

  constructor(spares: Bindings['SPARE'], waitMs: number, surroundings: Surroundings) {
    this.#spares = spares;
    this.#waitMs = waitMs;
    this.#surroundings = surroundings;
  }

  /** Whether a request may begin although its gate counts nothing: then somebody has to say `leave` at its end. */
  enter(): boolean {
    if (begun >= limits.sparedAtOnce.value) return false;
    begun += 1;
    return true;
  }

  leave(): void {
    begun -= 1;
  }

  /** Whether the events are on disk, in the spare of that gate. */
  async record(gate: string, events: readonly AuditEvent[]): Promise<boolean> {
    if (!this.#spares) return false;
    try {
      const asked = Promise.resolve(this.#spares.getByName(gate).record(events));
      return (await within(asked, this.#waitMs, this.#surroundings)) === true;
    } catch {
      // The cause is the platform's; what matters is that nobody is known to have them.
      return false;
    }
  }

  /**
   * What is served all the same, for a tenant that wants it so: the event that says so, which goes with the next call to the
   * gate. Until then a line in the platform's log is the record, and an alarm is a rule on it.
   */
  breakGlass(
    attempt: Pick<Attempt, 'tenant' | 'request' | 'action' | 'class' | 'subject'>,
    stage: 'attempt' | 'complete',
  ): AuditEvent {
    const since = this.#surroundings.now();
    const { subject, class: requestClass, ...who } = attempt;
    console.error(JSON.stringify({ event: 'breakglass', stage, ...who }));
    const more = {
      ...(subject !== undefined && { subject }),
      ...(requestClass !== undefined && { class: requestClass }),
    };
    return mint({ type: 'breakglass', ...who, ...more, stage, reason: 'audit_unavailable', since }, since);
  }
}
