// Explained decisions on their way from isolates to operators: buffered here, stored for minutes at a roster.
import type { RequestContext } from '../context.ts';
import type { Explanation, RouteDecision } from './decision.ts';

/** Decisions that an isolate explains in a second, 128 kB of them: explaining each request would cost more than routing it. */
export const DECISIONS_PER_S = 32;
/** Delay of a report to the roster, so that a busy isolate makes few calls. */
const DECISIONS_REPORT_MS = 100;
/** Time after which a report counts as lost with the request that made it. */
const REPORT_LOST_MS = 1_000;
/** Decisions that a roster stores, at most 8 MiB. */
export const DECISIONS_STORED_MAX = 2_048;
/** Time for an operator to read a decision. */
export const DECISION_MS = 600_000;

/** Explained decisions of the current second, and those that are not reported, by zone. Lost with the isolate. */
let second = { start: 0, explained: 0 };
const unreported = new Map<string, { readonly since: number; readonly decisions: RouteDecision[] }>();

/** Returns an explanation while the isolate may explain another decision. */
export function explainWithin(now: number, makeExplanation: () => Explanation): Explanation | undefined {
  // The clock may have been set back.
  if (Math.abs(now - second.start) >= 1_000) second = { start: now, explained: 0 };
  if (second.explained >= DECISIONS_PER_S) return undefined;
  second.explained += 1;
  return makeExplanation();
}

/** Reports a decision to the roster of the zone that served the request, or of the tenant's first zone. Best effort. */
export function reportDecision(
  explanation: Explanation,
  attempts: RouteDecision['attempts'],
  outcome: string,
  { id: request, settings, env, runtime, waitUntil }: RequestContext,
): void {
  const zone = attempts.at(-1)?.zone ?? explanation.zones.find((one) => settings.zones.includes(one));
  if (zone === undefined) return;
  const decision = { ...explanation, request, attempts, outcome };
  const now = runtime.now();
  const waiting = unreported.get(zone);
  if (waiting && now - waiting.since < REPORT_LOST_MS) {
    waiting.decisions.push(decision);
    return;
  }
  unreported.set(zone, { since: now, decisions: [decision] });
  const send = async () => {
    await runtime.after(DECISIONS_REPORT_MS).rings;
    const { decisions = [] } = unreported.get(zone) ?? {};
    unreported.delete(zone);
    await env.ROSTER.getByName(zone).addDecisions(decisions);
  };
  // A lost explanation harms no request.
  waitUntil(send().catch(() => {}));
}

/** Decisions of the last `DECISION_MS`, by request; the newest `DECISIONS_STORED_MAX` of them. */
export class StoredDecisions {
  readonly #decisions = new Map<string, RouteDecision & { readonly until: number }>();

  add(decisions: readonly RouteDecision[], now: number): void {
    for (const decision of decisions) {
      this.#decisions.delete(decision.request);
      this.#decisions.set(decision.request, { ...decision, until: now + DECISION_MS });
      const [first] = this.#decisions.keys();
      if (first !== undefined && this.#decisions.size > DECISIONS_STORED_MAX) this.#decisions.delete(first);
    }
  }

  get(request: string, now: number): RouteDecision | undefined {
    const { until = 0, ...decision } = this.#decisions.get(request) ?? {};
    return until > now ? (decision as RouteDecision) : undefined;
  }
}
