import type { ModelDescription } from '../../../../shared/pool/description.ts';
import type { Part } from '../../../../shared/registry/release.ts';
import type { ServedModel } from './served-model.ts';

/** Parts in the order in which work that names no revision takes them. */
const order: readonly Part[] = ['full', 'older', 'canary', 'grey'];

/**
 * Finds the revision of a digest among the served ones of a name; without a digest the one of the first part in
 * `order`. Returns none that the release map has withdrawn: begun work ends, new work is refused.
 */
export function findRevision(
  served: readonly ServedModel[],
  partOf: (description: ModelDescription) => Part | undefined,
  digest: string | undefined,
): ServedModel | undefined {
  const released = served.flatMap((model) => {
    const part = partOf(model.description);
    return part === undefined ? [] : [{ model, part }];
  });
  if (digest !== undefined) return released.find(({ model }) => model.description.revision === digest)?.model;
  const [first] = released.sort((one, other) => order.indexOf(one.part) - order.indexOf(other.part));
  return first?.model;
}
