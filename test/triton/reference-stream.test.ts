import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { installTriton } from '../../infra/pool/triton/install.ts';
import { convertRepository } from '../../infra/pool/triton/models/generate.ts';
import { startTriton } from '../../infra/pool/triton/start.ts';
import { describeReferenceStream, streamModels } from '../contract/engine/reference-stream.ts';
import { folder as installation } from './install.ts';

const repository = path.resolve(import.meta.dirname, '../../infra/pool/models/repository');

describeReferenceStream('Triton', async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'auricle-triton-'));
  await convertRepository(repository, folder);
  const installed = await installTriton({ folder: installation });
  const server = await startTriton({ installed, repository: folder, models: streamModels });
  return {
    url: server.url,
    metricsUrl: server.metricsUrl,
    async stop() {
      await server.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
});
