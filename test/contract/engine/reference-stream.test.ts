import path from 'node:path';
import { startEmbedded } from './embedded.ts';
import { describeReferenceStream, streamModels } from './reference-stream.ts';

const repository = path.resolve(import.meta.dirname, '../../../infra/pool/models/repository');

describeReferenceStream('the embedded engine', async () => {
  const started = await startEmbedded(repository, streamModels);
  return {
    ...started,
    put: () => Promise.reject(new Error('this repository is not ours')),
    stop: async () => void (await started.stop()),
  };
});
