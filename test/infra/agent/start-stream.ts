import type { World } from '../../../infra/pool/agent/agent.ts';
import { createDecoder } from '../../../infra/pool/agent/decode/decoder.ts';
import type { ServedModel } from '../../../infra/pool/agent/desk.ts';
import { tokens } from './double-engine.ts';
import { dialLink, type LinkRequest } from './double-link.ts';
import { createSequenceEngine, FRAME_SECONDS, shape } from './double-sequences.ts';
import { type Bench, startBench } from './start-agent.ts';

export const liveModel = (name = 'test-en'): ServedModel => ({
  description: {
    name,
    task: 'transcribe',
    languages: ['en'],
    revision: `sha256:${'0'.repeat(64)}`,
    precision: 'fp32',
    stage: 'full',
    loaded: 1,
  },
  recogniser: {
    model: name,
    frameSeconds: FRAME_SECONDS,
    decoder: createDecoder({ tokens, blank: 0, wordBoundary: 1 }, { beam: 4 }),
  },
  live: { model: `${name}-stream`, ...shape },
});

/** An agent whose engine has sequences. */
export async function startStreamBench(env: Record<string, string> = {}, world: World = {}) {
  const sequences = createSequenceEngine();
  const bench: Bench = await startBench(env, { engine: sequences.engine, models: [liveModel()], ...world });
  const attestation = () => bench.agent.keys.current().token;
  return {
    ...bench,
    sequences,
    request: (over: Partial<LinkRequest> = {}): LinkRequest => ({
      url: bench.agent.url,
      agent: 'agent-1',
      attestation: attestation(),
      edge: bench.edge,
      ...over,
    }),
    dial: (over: Partial<LinkRequest> = {}) =>
      dialLink({ url: bench.agent.url, agent: 'agent-1', attestation: attestation(), edge: bench.edge, ...over }),
  };
}

export type StreamBench = Awaited<ReturnType<typeof startStreamBench>>;

/** Samples as 16-bit PCM. */
export function linear16(samples: Float32Array): Uint8Array {
  const pcm = Int16Array.from(samples, (sample) => Math.round(Math.max(-1, Math.min(1, sample)) * 32_767));
  return new Uint8Array(pcm.buffer);
}
