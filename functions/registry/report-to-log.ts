// Reports entries of the model logs to the audit log. An entry is written before it is reported, and the next
// request reports what is missing. Event ids derive from the entries, so that repeats are dropped.
import { createHash } from 'node:crypto';
import type { EventDraft } from '../../shared/audit/event.ts';
import { eventId } from '../../shared/audit/event-id.ts';
import type { Entry } from '../../shared/registry/registry.ts';
import { moveOf, showStanding } from '../../shared/registry/stage.ts';
import { ok, type Result } from '../../shared/result.ts';
import { MODEL_LOG_ROWS_MAX, MODEL_TRIES_MAX } from './limits.ts';
import type { ModelContext } from './model-context.ts';
import { readEntries, readModel, storeReported } from './stored-model.ts';

/** Refuses with `audit_unavailable`: the entries stay written, and the next request reports them again. */
export async function reportToLog(context: ModelContext, model: string): Promise<Result<undefined>> {
  const { audit } = context;
  if (!audit) return ok(undefined);
  for (let attempt = 0; attempt < MODEL_TRIES_MAX; attempt += 1) {
    const stored = await readModel(context, model);
    if (stored.reported >= stored.registry.seq) return ok(undefined);
    const entries = await readEntries(context, model, stored.reported, MODEL_LOG_ROWS_MAX);
    for (const one of entries) {
      const reported = await audit.report(context.zone, draftOf(one), idOf(one));
      if (!reported.ok) return reported;
    }
    // On a conflict with a concurrent reporter, the next attempt reads the rest.
    await storeReported(context, stored, entries.at(-1)?.seq ?? stored.reported);
  }
  return ok(undefined);
}

const idOf = (one: Entry): string =>
  eventId(one.at, createHash('sha256').update(`${one.model} ${one.seq}`).digest().subarray(0, 10));

function draftOf(one: Entry): EventDraft {
  const about = { type: 'model.stage', model: one.model } as const;
  if (one.type === 'revision') {
    const origin = one.made ? `, made of ${one.made.from} with the method "${one.made.method}"` : '';
    return { ...about, revision: one.revision, to: 'develop-verify', reason: `signed by ${one.author}${origin}` };
  }
  if (one.type === 'name') {
    const { name, tenant, from, to, reason } = one;
    return {
      ...about,
      model: to ?? from ?? 'none',
      revision: 'none',
      to: to ?? 'none',
      alias: name,
      ...(tenant !== undefined && { tenant }),
      ...(from !== undefined && { from }),
      ...(reason !== undefined && { reason }),
    };
  }
  if (one.type === 'rollout') {
    return {
      ...about,
      revision: one.failed ?? one.revision,
      to: one.state === 'stopped' ? 'stopped' : 'develop-verify',
      verdict: 'FAIL',
      evidence: one.statement,
      reason: one.reason,
    };
  }
  if (one.type === 'alias') {
    return {
      ...about,
      revision: one.revision ?? 'none',
      to: one.alias,
      alias: one.alias,
      ...(one.from !== undefined && { from: one.from }),
      ...(one.reason !== undefined && { reason: one.reason }),
    };
  }
  const { revision, from, to, statement, signers } = one;
  return {
    ...about,
    revision,
    from: showStanding(from),
    to: showStanding(to),
    gate: to.stage,
    // An advance requires a PASS; a higher share does not.
    ...(moveOf(from, to) === 'advance' && { verdict: 'PASS' as const }),
    evidence: statement,
    reason: `signed by ${signers.join(', ')}`,
  };
}
