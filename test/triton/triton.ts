import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { installTriton } from '../../infra/pool/triton/install.ts';
import { convertModel, convertRepository } from '../../infra/pool/triton/models/generate.ts';
import { startTriton } from '../../infra/pool/triton/start.ts';
import type { Differences, Implementation, Running } from '../contract/engine/implementation.ts';
import { testModels, writeRepository } from '../contract/engine/test-models.ts';
import { folder as installation } from './install.ts';

/** Differences of Triton 2.51 over HTTP. Each is also in the embedded engine's README. */
const differences: Differences = {
  unfilledShape: { answer: 500, why: 'errors found while the JSON is read are internal errors to Triton' },
  notJson: { answer: 500, why: 'errors found while the JSON is read are internal errors to Triton' },
  largeBody: { answer: 'read', why: 'this version has no limit; later ones have --http-max-input-size' },
  abandoned: { answer: 'served', why: 'Triton does not read from a connection while its request is served' },
  rejection: { answer: 'forgotten', why: 'a request that never entered the queue has no statistics' },
  lateness: { answer: 'whenever', why: 'Triton looks at timeouts only now and then, up to a second late' },
  failure: { answer: 'success', why: 'the Python backend answered, if only with an error' },
  unload: { answer: 'whenever', why: 'the model ends by itself afterwards' },
  downReason: { answer: 'unloaded', why: 'an ensemble is unloaded together with its part' },
  misfit: { answer: 'goes down', why: 'a failed dependency check unloads what was there' },
  unknownLoad: { answer: 500, why: 'not found in the repository is an internal error to Triton' },
  unreadable: {
    answer: { status: 500, says: /failed to poll from model repository/ },
    why: 'the reason is in its log only',
  },
  gpuSettings: { answer: 'refused', why: 'a GPU that is asked for must be there' },
  generateParameters: { answer: 'ignored', why: "they are the model's own in a generate request" },
  generateType: { answer: 500, why: 'errors found while the JSON is read are internal errors to Triton' },
  generateFailure: { answer: 400, why: 'generate answers 400 to every error of a model' },
  memory: { answer: 'unknown', why: 'its Python backend reports no memory' },
  counters: { answer: 'start again', why: 'statistics live as long as the loaded model' },
};

export const triton: Implementation = {
  name: 'Triton',
  differences,
  // A process of Python for each model, as long as the hooks of the other files.
  startMs: 120_000,
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
        for (const [name, { config }] of Object.entries(models)) {
          await convertModel(written, repository, name).catch(async () => {
            // Some tests need an unreadable configuration.
            await mkdir(path.join(repository, name), { recursive: true });
            const text = config.replace('"onnxruntime"', '"python"');
            await writeFile(path.join(repository, name, 'config.pbtxt'), `name: "${name}"\n${text}\n`);
          });
        }
      },
      async stop() {
        await server.stop();
        await rm(folder, { recursive: true, force: true });
      },
    };
  },
};
