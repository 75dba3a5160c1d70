// Facts for the tiers of files: revisions with stages, aliases and uses, and the tiers of their blobs.
import { modelFile } from '../../shared/registry/model-files.ts';
import { MODELS } from '../store/blobs.ts';
import { endOf } from '../store/rows.ts';
import { joinFacts, needsOf, type RevisionFiles, type TierFacts } from '../tier/facts.ts';
import { readUses, usesOf } from '../tier/use.ts';
import { MODEL_REVISIONS_MAX } from './decide.ts';
import { revisionRowOf } from './get-model.ts';
import type { ModelContext } from './model-context.ts';
import { FILES } from './model-files.ts';
import { listModels } from './publish-release.ts';
import { readLive } from './stored-live.ts';
import { readModel } from './stored-model.ts';

type FactsContext = Pick<ModelContext, 'rows' | 'blobs' | 'log' | 'isUnderLegalHold' | 'now'>;

export async function readTierFacts(context: FactsContext): Promise<TierFacts> {
  const [models, isUnderLegalHold = false] = await Promise.all([listModels(context), context.isUnderLegalHold?.()]);
  const revisions = await Promise.all(models.map(({ model }) => readRevisions(context, model, isUnderLegalHold)));
  return joinFacts(revisions.flat(), await context.blobs.list(MODELS, ''));
}

async function readRevisions(
  context: FactsContext,
  model: string,
  isUnderLegalHold: boolean,
): Promise<RevisionFiles[]> {
  const [{ registry }, lists, uses, { live }] = await Promise.all([
    readModel(context, model),
    context.rows.scan(model, FILES, endOf(FILES), MODEL_REVISIONS_MAX),
    readUses(context.rows, model, MODEL_REVISIONS_MAX),
    readLive(context, model),
  ]);
  return lists.flatMap(({ key, value }) => {
    const revision = key.slice(FILES.length);
    if (!Object.hasOwn(registry.revisions, revision)) return [];
    const { stage, share, aliases, registered, since } = revisionRowOf(registry, revision);
    const use = uses.get(revision);
    return [
      {
        ...{ model, revision, stage, share, aliases, needs: needsOf(registry, revision, isUnderLegalHold) },
        used: Math.max(registered, since, use?.at ?? 0, live.traffic[revision]?.at ?? 0),
        uses: use ? usesOf(use, context.now()) : 0,
        files: modelFile.array().parse(value.files),
      },
    ];
  });
}
