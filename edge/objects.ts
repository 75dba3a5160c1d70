// RPC methods of the Durable Objects, as isolates call them.
import type { AuditEvent } from '../shared/audit/event.ts';
import type { Snapshot } from '../shared/pool/heartbeat.ts';
import type { ReleaseMap } from '../shared/registry/release.ts';
import type { Result } from '../shared/result.ts';
import type { Claims, TokenShare } from '../shared/tenant/claims.ts';
import type { GateAnswer, GateStep } from './ledger/gate-step.ts';
import type { KeyClaim, KeyDecision, KeyOutcome } from './ledger/idempotency.ts';
import type { OutboxPage } from './ledger/outbox.ts';
import type { Quota } from './ledger/quota.ts';
import type { UsageRow } from './ledger/usage.ts';
import type { RouteDecision } from './routing/decision.ts';
import type { RefusedAgent } from './routing/refused-agents.ts';
import type { MetricReport } from './telemetry/meter.ts';

interface OutboxMethods {
  /** Events after position `after`, oldest first, that the log has not acknowledged. */
  outbox(after: number, limit: number): OutboxPage;
}

export interface GateMethods extends OutboxMethods {
  apply(steps: readonly GateStep[]): GateAnswer[];
  quota(allowance: Claims['allowance'], share?: TokenShare): Quota;
  commitmentOf(subject: string): string;
  /** Usage of the tenant in a month, by pool. */
  usage(month: string): UsageRow[];
  claimKey(claim: KeyClaim): KeyDecision;
  renewKey(key: string, run?: string): void;
  endKey(key: string, outcome: KeyOutcome, content?: string, run?: string): boolean;
}

/** `force`: drains the last pool of a model, too. `by`: the operator, as the audit log names one. */
export interface DrainOrder {
  readonly force: boolean;
  readonly by: { readonly tenant: string; readonly request: string; readonly subject?: string };
}

export interface RosterMethods extends OutboxMethods {
  snapshot(): Snapshot;
  record(events: readonly AuditEvent[]): void;
  release(map: ReleaseMap, signed: string): number;
  refused(): RefusedAgent[];
  addDecisions(decisions: readonly RouteDecision[]): void;
  decision(request: string): RouteDecision | undefined;
  drain(pool: string, order: DrainOrder): Result<readonly string[]>;
  /** Adds a tenant with usage in a month. */
  addTenant(month: string, name: string): void;
  /** Tenants with usage in a month, some of those after `after`. */
  tenants(month: string, after: string): string[];
  addMetrics(report: MetricReport): void;
  /** Series of the zone with their values. */
  metrics(): [series: string, value: number][];
}
