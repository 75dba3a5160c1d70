import { limits } from '../../../shared/limits.ts';
import type { ModelDescription } from '../../../shared/pool/description.ts';
import type { Refusal } from '../../../shared/refusal.ts';
import type { Dispatcher } from './dispatch.ts';
import type { Keys } from './keys.ts';
import { bugFields, type Log } from './log.ts';
import type { Metrics } from './metrics.ts';
import type { Recogniser } from './segment.ts';
import type { createReplayCache, createTicketReader } from './ticket.ts';

export interface ServedModel {
  readonly description: ModelDescription;
  readonly recogniser: Recogniser;
}

/** What every request needs of the agent. */
export interface DeskParts {
  readonly agent: string;
  readonly now: () => number;
  readonly keys: Keys;
  readonly readTicket: ReturnType<typeof createTicketReader>;
  readonly replays: ReturnType<typeof createReplayCache>;
  readonly dispatcher: Dispatcher;
  readonly metrics: Metrics;
  readonly log: Log;
  /** The model of that name, while the engine serves it. */
  readonly model: (name: string) => ServedModel | undefined;
  readonly keepaliveMs: number;
}

export interface Desk extends DeskParts {
  /** Counts a request in; `leave` counts it out. `signal` fires when the agent cannot wait for it any longer. */
  enter(): { readonly signal: AbortSignal; leave(): void };
  /** No further request is let in: too many are open, or the agent is about to stop. */
  full(): boolean;
  report(refusal: Refusal): void;
  bug(error: unknown): void;
  /** Requests being worked on. */
  busy(): number;
  draining(): boolean;
  drain(): void;
  /** Resolves once nobody is inside, or after `milliseconds`, when those inside are sent away. */
  empty(milliseconds: number): Promise<void>;
}

/** Where requests come in and are counted. */
export function openDesk(parts: DeskParts): Desk {
  const inside = new Set<AbortController>();
  let draining = false;
  let onEmpty = () => {};
  return {
    ...parts,
    enter() {
      const entry = new AbortController();
      inside.add(entry);
      return {
        signal: entry.signal,
        leave() {
          inside.delete(entry);
          if (inside.size === 0) onEmpty();
        },
      };
    },
    full: () => draining || inside.size > limits.requestsInFlight.value,
    report({ reason, detail }) {
      parts.metrics.request(reason);
      parts.log('refused', { reason, ...(detail !== undefined && { detail }) });
    },
    bug(error) {
      parts.metrics.request('internal');
      parts.log('bug', bugFields(error));
    },
    busy: () => inside.size,
    draining: () => draining,
    drain() {
      draining = true;
    },
    async empty(milliseconds) {
      if (inside.size === 0) return;
      await new Promise<void>((resolve) => {
        const late = setTimeout(() => {
          for (const entry of inside) entry.abort();
        }, milliseconds);
        // Those sent away still get their last record out.
        const tooLate = setTimeout(resolve, milliseconds + limits.agentGoodbyeMs.value);
        onEmpty = () => {
          clearTimeout(late);
          clearTimeout(tooLate);
          resolve();
        };
      });
    },
  };
}
