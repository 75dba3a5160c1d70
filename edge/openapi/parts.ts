// Shared parts of the descriptions of addresses.
import { requestedModel } from '../../shared/registry/names.ts';
import { modelName } from '../../shared/registry/revision.ts';
import { classes } from '../../shared/tenant/claims.ts';
import { input } from './values.ts';

export const requestId = { 'x-request-id': { $ref: '#/components/headers/RequestId' } };
/** Headers of a transcript that a degraded pool made. */
export const degradedHeaders = {
  'x-auricle-degraded': { $ref: '#/components/headers/Degraded' },
  'cache-status': { $ref: '#/components/headers/CacheStatus' },
};
export const schema = (name: string) => ({ schema: { $ref: `#/components/schemas/${name}` } });
export const success = (description: string, content: object, headers: object = {}) => ({
  '200': { description, headers: { ...requestId, ...headers }, content },
});
export const json = (name: string) => ({ 'application/json': schema(name) });
export const text = { schema: { type: 'string' } };
export const bytes = { schema: { type: 'string', format: 'binary' } };
export const audioTypes = [
  'audio/wav',
  'audio/aiff',
  'audio/flac',
  'audio/mpeg',
  'audio/ogg',
  'audio/webm',
  'audio/mp4',
  'audio/aac',
  'audio/amr',
];

const string = { type: 'string' };

export const query = (name: string, description: string, value: object = string) => ({
  name,
  in: 'query',
  required: false,
  description,
  schema: value,
});
export const inPath = (name: string, description: string, value: object = string) => ({
  ...query(name, description, value),
  in: 'path',
  required: true,
});
export const hint = (name: string, description: string, value: object = string) => ({
  ...query(name, description, value),
  in: 'header',
});
const KEY = 'Idempotency-Key';
const keyed =
  'stored for a day, for the subject of the token. The same request with the same key gets the id of the first, also after a refusal with an open outcome.';
/** Header of requests that make an upload or a project. */
export const idempotencyKey = hint(KEY, `Of the request, ${keyed}`, {
  type: 'string',
  pattern: '^([!#-\\[\\]-~]{1,255}|"[!#-\\[\\]-~]{1,255}")$',
});
/** Header of recordings that may become an upload; other requests ignore it. */
export const uploadKey = hint(KEY, `Of a request that becomes an upload, ${keyed}`);

export const needed = <T extends object>(parameter: T) => ({ ...parameter, required: true });

export const model = inPath('name', 'Name of the model', input(modelName));
export const namedModel = inPath('name', 'A model, or a name for one', input(requestedModel));

/** A class above the token's is lowered to it, and a name that is no class counts as none, so that any text is accepted. */
export const requestClass = hint(
  'x-auricle-class',
  `Requested class: ${classes.join(', ')}; never above that of the token.`,
);
