// Requests with an Idempotency-Key: each runs under the id and in the zone of the first one (ledger/idempotency.ts).
import { createHash } from 'node:crypto';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { Claims } from '../../shared/tenant/claims.ts';
import { late, within } from '../clock.ts';
import type { RequestContext } from '../context.ts';
import { mayBeDone } from '../functions/call-functions.ts';
import type { KeyOutcome } from '../ledger/idempotency.ts';
import { IDEMPOTENCY_RUN_MS } from '../ledger/idempotency.ts';
import { gateName } from '../ledger/record.ts';

/** Length of an idempotency key: a UUID has 36 characters, and Stripe takes as many as this. */
const IDEMPOTENCY_KEY_CHARACTERS = 255;

export const IDEMPOTENCY_KEY = 'Idempotency-Key';

/** One run of a request, under an id of its own or that of the first request with its key. */
export interface KeyedRequest {
  readonly id: string;
  readonly zone: string;
  /** A request with this key was carried out before. */
  readonly done: boolean;
  /** Digest of the file of the request that was carried out. */
  readonly content: string | undefined;
  /** Digest of the request; absent without a key. */
  readonly fingerprint: string | undefined;
  /** Keeps the key while a file passes through. */
  renew(): void;
  /**
   * Stores the outcome for the next request with the key. `content`: digest of the file. Returns whether no
   * later request can get the id of this run: only then may its upload be deleted.
   */
  end(refusal?: Refusal, content?: string): Promise<boolean>;
}

interface RunParams {
  readonly headers: Headers;
  /** Parsed request, whose digest binds the key to it. */
  readonly request: readonly unknown[];
  readonly newId: () => string;
  /** Zone of a new run. */
  readonly zone: Result<string>;
}

/** Begins a run. Refuses as `zone` does, or for its key. */
export async function beginKeyedRequest(
  { headers, request, newId, zone }: RunParams,
  claims: Claims,
  context: RequestContext,
): Promise<Result<KeyedRequest>> {
  const given = readKey(headers.get(IDEMPOTENCY_KEY));
  if (!given.ok) return given;
  if (given.value === undefined) return zone.ok ? ok(unkeyed(newId(), zone.value)) : zone;
  const key = digest([claims.subject ?? null, given.value]);
  const fingerprint = digest(request);
  const gate = context.env.GATE.getByName(gateName(claims, context.settings.zones));
  const name = crypto.randomUUID();
  const proposed = zone.ok ? { id: newId(), zone: zone.value } : undefined;
  const { runtime, settings, waitUntil } = context;
  const bounded = <T>(work: Promise<T>) => within(work, settings.auditWaitMs, runtime).catch((): typeof late => late);
  const decision = await bounded(gate.claimKey({ key, fingerprint, run: name, proposed }));
  if (decision === late) return no(refuse('uploads_unavailable', undefined, 'the gate does not answer for a key'));
  if (decision.kind !== 'run')
    return decision.kind === 'unplaced' && !zone.ok ? zone : no(refuse(REASONS[decision.kind]));
  const { id, done, content } = decision;
  // The first renewal takes the longer lease of a request that sends a file.
  let renewed = Number.NEGATIVE_INFINITY;
  return ok({
    ...{ id, zone: decision.zone, done, content, fingerprint },
    renew() {
      const now = runtime.now();
      if (now - renewed < IDEMPOTENCY_RUN_MS / 3) return;
      renewed = now;
      waitUntil(gate.renewKey(key, name).catch(() => {}));
    },
    async end(refusal, digested) {
      // A lost outcome is recovered by the next request, which calls the functions under the same id.
      return (await bounded(gate.endKey(key, outcomeOf(refusal), digested, name))) === true;
    },
  });
}

const REASONS = {
  reused: 'idempotency_key_reused',
  running: 'idempotency_key_running',
  unplaced: 'internal',
} as const;

const unkeyed = (id: string, zone: string): KeyedRequest => ({
  ...{ id, zone, done: false, content: undefined, fingerprint: undefined },
  renew: () => {},
  end: async () => true,
});

function outcomeOf(refusal: Refusal | undefined): KeyOutcome {
  if (refusal === undefined) return 'done';
  return mayBeDone(refusal) || refusal.reason === 'internal' ? 'unknown' : 'refused';
}

/** A key as a structured-field string, or bare as most clients send it. */
export function readKey(header: string | null): Result<string | undefined> {
  if (header === null) return ok(undefined);
  const most = IDEMPOTENCY_KEY_CHARACTERS;
  const key = /^"(.*)"$/.exec(header)?.[1] ?? header;
  if (key.length <= most && /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(key)) return ok(key);
  const rule = `must have 1 to ${most} printable ASCII characters without spaces, quotes and backslashes`;
  return no(refuse('field_invalid', { field: IDEMPOTENCY_KEY, rule }));
}

const digest = (value: unknown): string => createHash('sha256').update(JSON.stringify(value)).digest('base64url');
