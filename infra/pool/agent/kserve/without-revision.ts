import { engineModelOf, type ServedModel } from '../models/served-model.ts';

/** End of a model's name at the engine, in a JSON text. */
const SUFFIX = /\.[0-9a-f]{12}(?=["'])/g;

/** Returns the text of an engine's answer with the caller's names of the model and its parts. */
export function withoutRevision(body: Uint8Array, model: ServedModel): Uint8Array {
  if (engineModelOf(model) === model.description.name) return body;
  return new TextEncoder().encode(new TextDecoder().decode(body).replaceAll(SUFFIX, ''));
}
