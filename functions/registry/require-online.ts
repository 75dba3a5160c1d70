// Requires that no file of a revision is in archive before an alias or a stage needs it.
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { MODELS } from '../store/blobs.ts';
import { readPlan } from '../tier/plan.ts';
import { RETURN_MS } from '../tier/prices.ts';
import { noteUse } from '../tier/use.ts';
import { type FileContext, readList } from './model-files.ts';

/**
 * Notes a use, which keeps the files out of archive and brings archived ones back. Refuses `model_archived` while one
 * is in archive or on the way there. The use is stored before the plan is read, and the plan before the tiers
 * (functions/tier/sweep.ts): a worker that archives a file either sees the use, or is seen.
 */
export async function requireOnline(context: FileContext, model: string, revision: string): Promise<Result<undefined>> {
  const { rows, blobs } = context;
  const files = await readList(context, model, revision);
  if (!files) return ok(undefined);
  const now = context.now();
  await noteUse(rows, model, revision, now);
  const { plan } = await readPlan(rows);
  const leaving = new Set(plan.moves.filter(({ to }) => to === 'archive').map(({ digest }) => digest));
  const found = await Promise.all(files.map(({ digest }) => blobs.find(MODELS, digest)));
  const away = files.filter(({ digest }, at) => leaving.has(digest) || found[at]?.placed?.tier === 'archive');
  if (away.length === 0) return ok(undefined);
  const expected = Math.max(...away.map(({ digest }) => plan.returns[digest] ?? now + RETURN_MS));
  return no(refuse('model_archived', { model, rule: new Date(expected).toISOString() }));
}
