import { engineModelOf, type ServedModel } from '../models/served-model.ts';

/** Returns the text of an engine's answer with the caller's names of the model and its parts. */
export function withoutRevision(body: Uint8Array, model: ServedModel): Uint8Array {
  const suffix = engineModelOf(model).slice(model.description.name.length);
  if (suffix === '') return body;
  return new TextEncoder().encode(new TextDecoder().decode(body).replaceAll(suffix, ''));
}
