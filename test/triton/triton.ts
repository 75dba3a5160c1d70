import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { installTriton } from '../../infra/pool/triton/install.ts';
import { convertModel, convertRepository } from '../../infra/pool/triton/models/generate.ts';
import { startTriton } from '../../infra/pool/triton/start.ts';
import type { Implementation, Running } from '../contract/engine/implementation.ts';
import { testModels, writeRepository } from '../contract/engine/test-models.ts';
import { folder as installation } from './install.ts';

export const triton: Implementation = {
  name: 'Triton',
  lacks: {},
  oddities: { badShape: 400, notJson: 400, unknownLoad: 404, loadFailed: 400 },
  async start(): Promise<Running> {
    const folder = await mkdtemp(path.join(tmpdir(), 'auricle-triton-'));
    const [written, repository] = [path.join(folder, 'onnx'), path.join(folder, 'python')];
    await writeRepository(written, testModels);
    await convertRepository(written, repository);
    const server = await startTriton({ installed: await installTriton({ folder: installation }), repository });
    return {
      url: server.url,
      metricsUrl: server.metricsUrl,
      async put(models) {
        await writeRepository(written, models);
        for (const name of Object.keys(models)) await convertModel(written, repository, name);
      },
      async stop() {
        await server.stop();
        await rm(folder, { recursive: true, force: true });
      },
    };
  },
};
