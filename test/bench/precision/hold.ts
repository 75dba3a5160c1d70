// Memory of a network, `hold.ts FILE`: this process loads it, runs it over ten seconds of features, and
// reports its growth.
import { InferenceSession, Tensor } from 'onnxruntime-node';

const [file = ''] = process.argv.slice(2);
const STEPS = 1_000;

/** The runtime itself, loaded by now, is not the network's. */
async function grow(): Promise<number> {
  const before = process.memoryUsage.rss();
  const session = await InferenceSession.create(file, { intraOpNumThreads: 1 });
  const features = new Tensor('float32', new Float32Array(STEPS * 80), [1, STEPS, 80]);
  const length = new Tensor('int32', [STEPS], [1, 1]);
  for (let n = 0; n < 3; n += 1) await session.run({ FEATURES: features, FEATURE_LENGTH: length });
  return process.memoryUsage.rss() - before;
}

process.send?.({ bytes: await grow() });
process.disconnect?.();
