// Entries of the logs of models, told to the audit log. An entry is written before it is told, and whoever comes next tells
// what was not: each has an id that is made of what it is, so that telling it twice says it once.
import { createHash } from 'node:crypto';
import type { EventDraft } from '../../shared/audit/event.ts';
import { eventId } from '../../shared/audit/event-id.ts';
import { limits } from '../../shared/limits.ts';
import type { Entry } from '../../shared/model/registry.ts';
import { moveOf, showStanding } from '../../shared/model/stage.ts';
import { ok, type Result } from '../../shared/result.ts';
import { keepTold, readEntries, readModel } from './kept-model.ts';
import type { ModelDesk } from './model-desk.ts';

/** Refuses with `audit_unavailable`: what was written stays written, and is told with the next question. */
export async function tellLog(desk: ModelDesk, model: string): Promise<Result<undefined>> {
  const { audit } = desk;
  if (!audit) return ok(undefined);
  for (let attempt = 0; attempt < limits.modelTries.value; attempt += 1) {
    const kept = await readModel(desk, model);
    if (kept.told >= kept.registry.seq) return ok(undefined);
    const entries = await readEntries(desk, model, kept.told, limits.modelLogRows.value);
    for (const one of entries) {
      const told = await audit.report(desk.zone, draftOf(one), idOf(one));
      if (!told.ok) return told;
    }
    // Somebody else who told the same is ahead: what is left is read again.
    await keepTold(desk, kept, entries.at(-1)?.seq ?? kept.told);
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
    // Nothing but a PASS goes to another stage; a share may grow without one.
    ...(moveOf(from, to) === 'advance' && { verdict: 'PASS' as const }),
    evidence: statement,
    reason: `signed by ${signers.join(', ')}`,
  };
}
