import { KiB } from '../../../../shared/bytes.ts';
import { type ModelDescription, tiers } from '../../../../shared/pool/description.ts';

/**
 * Models in a hello or report, as JSON. A message of 64 KiB holds 48 KiB of JSON, of which an attestation takes up
 * to 16 KiB.
 */
const LISTED_MODELS_BYTES = 30 * KiB;

/** Returns every loaded revision, and of the others as many as a message has room for, the fastest tiers first. */
export function listModels(known: readonly ModelDescription[]): ModelDescription[] {
  const isWithin = (tier: ModelDescription['tier']) => known.filter((model) => model.tier === tier);
  const listed: ModelDescription[] = [];
  let bytes = 0;
  for (const model of [undefined, ...tiers].flatMap(isWithin)) {
    bytes += Buffer.byteLength(JSON.stringify(model)) + 1;
    if (model.tier !== undefined && bytes > LISTED_MODELS_BYTES) break;
    listed.push(model);
  }
  return listed;
}
