// Added latency of a durable record: the same request, one at a time, by a tenant in `strict` mode and one
// that is not.
import path from 'node:path';
import { ROOT } from '../../../infra/local/root.ts';
import { readWorkerConfig } from '../../../infra/local/worker-config.ts';
import { makeIdentity } from '../front/identity.ts';
import { freePort, listens, startOn, stopAll } from '../front/processes.ts';
import { startUpstream } from '../front/upstream-process.ts';
import { MODEL, PATH } from '../front/words.ts';
import { planWorker } from '../front/workerd.ts';
import { quantile } from './commits.ts';

const AUDIO_BYTES = 1_024;

export async function measureAck(folder: string, requests: number): Promise<{ p50: number; p99: number }> {
  const identity = await makeIdentity(folder);
  const upstream = await startUpstream('0,1');
  try {
    const port = await freePort();
    const plan = await planWorker(path.join(ROOT, 'edge/worker.ts'), {
      folder: path.join(folder, 'edge'),
      port,
      config: readWorkerConfig(path.join(ROOT, 'edge/wrangler.jsonc')),
      bindings: identity.edgeBindings,
    });
    const child = startOn('0,1', plan, { cwd: folder });
    await listens(port, child);
    const url = `http://127.0.0.1:${port}`;
    await upstream.join(url, identity);
    const kinds = await Promise.all(
      (['buffered', 'strict'] as const).map(async (audit) => ({
        token: await identity.tenantToken(`ack-${audit}`, audit),
        took: [] as number[],
      })),
    );
    // Interleaved, so that a busy moment affects both.
    for (let done = 0; done < requests + 50; done += 1) {
      for (const { token, took } of kinds) {
        const began = performance.now();
        await transcribe(url, token);
        if (done >= 50) took.push(performance.now() - began);
      }
    }
    const [buffered, strict] = kinds.map(({ took }) => took) as [number[], number[]];
    const added = (at: number) => quantile(strict, at) - quantile(buffered, at);
    return { p50: added(0.5), p99: added(0.99) };
  } finally {
    await stopAll();
  }
}

async function transcribe(url: string, token: string): Promise<void> {
  const form = new FormData();
  form.append('model', MODEL);
  form.append('language', 'en');
  form.append('file', new Blob([new Uint8Array(AUDIO_BYTES)], { type: 'audio/wav' }), 'a.wav');
  const headers = { authorization: `Bearer ${token}` };
  const answer = await fetch(`${url}${PATH}`, { method: 'POST', headers, body: form });
  await answer.arrayBuffer();
  if (answer.status !== 200) throw new Error(`the edge answered ${answer.status}`);
}
