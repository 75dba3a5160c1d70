import { createDecoder } from '../../../../infra/pool/agent/asr/decode/decoder.ts';
import type { AgentOverrides } from '../../../../infra/pool/agent/backend.ts';
import type { ServedModel } from '../../../../infra/pool/agent/models/served-model.ts';
import { tokens } from '../../../fake/engine.ts';
import { createSequenceEngine, FRAME_SECONDS, shape } from '../../../fake/sequence-engine.ts';
import { dialLink, type LinkRequest } from '../../../fake/stream-link.ts';
import { type Bench, startBench, testDescription } from '../start-agent.ts';

export const liveModel = (name = 'test-en'): ServedModel => ({
  description: { ...testDescription, name },
  recogniser: {
    model: name,
    frameSeconds: FRAME_SECONDS,
    decoder: createDecoder({ tokens, blank: 0, wordBoundary: 1 }, { beam: 4 }),
  },
  live: { model: `${name}-stream`, ...shape },
});

/** An agent whose engine has sequences. */
export async function startStreamBench(env: Record<string, string> = {}, overrides: AgentOverrides = {}) {
  const sequences = createSequenceEngine();
  const bench: Bench = await startBench(env, { engine: sequences.engine, models: [liveModel()], ...overrides });
  const request = (over: Partial<LinkRequest> = {}): LinkRequest => {
    const attestation = bench.agent.keys.current().token;
    return { url: bench.agent.url, agent: 'agent-1', attestation, edge: bench.edge, ...over };
  };
  return {
    ...bench,
    sequences,
    request,
    dial: (over: Partial<LinkRequest> = {}) => dialLink(request(over)),
  };
}

export type StreamBench = Awaited<ReturnType<typeof startStreamBench>>;

/** Samples as 16-bit PCM. */
export function linear16(samples: Float32Array): Uint8Array {
  const pcm = Int16Array.from(samples, (sample) => Math.round(Math.max(-1, Math.min(1, sample)) * 32_767));
  return new Uint8Array(pcm.buffer);
}
