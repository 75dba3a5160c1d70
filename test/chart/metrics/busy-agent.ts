// A real agent before the embedded engine, after one recording and one live stream: most series of its page have a value.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { startAgent } from '../../../infra/pool/agent/agent.ts';
import { readSettings } from '../../../infra/pool/agent/settings/settings.ts';
import { startEmbedded } from '../../contract/engine/embedded.ts';
import { askShort, startFakeEdge } from '../../fake/edge.ts';
import { dialLink } from '../../fake/stream-link.ts';
import { audioForm, multipart } from '../../infra/agent/fixtures.ts';
import { makeEnvironment } from '../../infra/agent/start-agent.ts';

const root = path.resolve(import.meta.dirname, '../../..');
const repository = path.join(root, 'infra/pool/models/repository');
/** WAV of 16-bit mono PCM at 16 kHz. */
const clip = new Uint8Array(readFileSync(path.join(root, 'test/clips/number.wav')));
const WAV_HEAD_BYTES = 44;

export async function startBusyAgent() {
  const folder = mkdtempSync(path.join(tmpdir(), 'auricle-page-'));
  const edge = await startFakeEdge();
  const engine = await startEmbedded(repository, ['reference-en', 'reference-en-stream']);
  const settings = readSettings({
    ...(await makeEnvironment(folder, edge)),
    AURICLE_MODELS: repository,
    AURICLE_MODEL_NAMES: 'reference-en',
    AURICLE_ENGINE_URL: engine.url,
    AURICLE_ENGINE_METRICS_URL: engine.metricsUrl,
    AURICLE_PRICE: '3.2',
  });
  const agent = await startAgent(settings, { write: () => {} });
  const call = { url: agent.url, agent: 'agent-1', attestation: agent.keys.current().token, edge };
  const work = async () => {
    const [answer] = await Promise.all([transcribe(call), stream(call)]);
    return answer;
  };
  return {
    url: agent.url,
    work,
    async stop() {
      await agent.stop();
      await engine.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

type AgentCall = Omit<Parameters<typeof askShort>[0], 'body' | 'contentType'>;

const transcribe = (call: AgentCall) =>
  askShort({ ...call, body: audioForm(clip), contentType: multipart, head: { model: 'reference-en' } });

async function stream(call: AgentCall): Promise<void> {
  const link = await dialLink({ ...call, model: 'reference-en' });
  await link.open({ model: 'reference-en' });
  await link.audio(clip.subarray(WAV_HEAD_BYTES));
  await link.end();
  await link.event('final');
}
