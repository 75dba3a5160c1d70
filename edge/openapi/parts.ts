// Pieces that several addresses are described with.
export const requestId = { 'x-request-id': { $ref: '#/components/headers/RequestId' } };
export const schema = (name: string) => ({ schema: { $ref: `#/components/schemas/${name}` } });
export const success = (description: string, content: object) => ({
  '200': { description, headers: requestId, content },
});
export const json = (name: string) => ({ 'application/json': schema(name) });

export const query = (name: string, description: string) => ({
  name,
  in: 'query',
  required: false,
  description,
  schema: { type: 'string' },
});
export const inPath = (name: string, description: string) => ({
  ...query(name, description),
  in: 'path',
  required: true,
});
export const hint = (name: string, description: string) => ({ ...query(name, description), in: 'header' });
