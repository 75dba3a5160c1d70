// Endpoints of the edge for the tiers of revisions (shared/registry/tiers.ts).
import type { EdgeHandler } from '../caller/from-edge.ts';
import { answer } from '../http/answer.ts';
import type { ModelContext } from './model-context.ts';
import { byOperator, ofModel } from './on-models.ts';
import { getModelTiers, getStoreTiers } from './tiers.ts';

/** GET /api/models/{model}/tiers */
export const onModelTiers = (context: ModelContext | undefined): EdgeHandler =>
  ofModel(context, async (known, model) => answer(200, await getModelTiers(known, model)));

/** GET /api/tiers */
export const onStoreTiers = (context: ModelContext | undefined): EdgeHandler =>
  byOperator(context, async (known) => answer(200, await getStoreTiers(known)));
