import { InferenceSession } from 'onnxruntime-node';
import { ok } from '../../../../shared/result.ts';
import { makeOutput, nameOf, type OnnxModel, writeModel } from '../onnx/graph.ts';
import { elements } from '../onnx/tensor.ts';
import { type BuildResult, problem } from '../problem.ts';
import { Histogram } from './histogram.ts';
import type { Sample } from './samples.ts';
import type { Range } from './to-static.ts';

/** Runs the network in full precision over the samples and returns the ranges of the named tensors. */
export async function calibrate(
  model: OnnxModel,
  names: readonly string[],
  samples: AsyncIterable<BuildResult<Sample>> | Iterable<BuildResult<Sample>>,
): Promise<BuildResult<Map<string, Range>>> {
  const present = new Set([...model.inputs, ...model.outputs].map(nameOf));
  const more = names.filter((name) => !present.has(name)).map((name) => makeOutput(name, elements.FLOAT));
  // One thread: sums of several could differ in the last bit, and the written file must be reproducible.
  const session = await InferenceSession.create(writeModel({ ...model, outputs: [...model.outputs, ...more] }), {
    intraOpNumThreads: 1,
  });
  const seen = new Map(names.map((name) => [name, new Histogram()]));
  try {
    for await (const sample of samples) {
      if (!sample.ok) return sample;
      const missing = session.inputNames.find((name) => !Object.hasOwn(sample.value, name));
      if (missing !== undefined) return problem('artifact', `the samples do not give ${missing}`);
      const inputs = Object.fromEntries(session.inputNames.map((name) => [name, sample.value[name] as Sample[string]]));
      const given = await session.run(inputs);
      for (const [name, histogram] of seen) {
        const { data } = (given[name] ?? inputs[name]) as Sample[string];
        if (!histogram.add(data as Float32Array))
          return problem('unsupported', `the network gives numbers without bounds at ${name}`);
      }
    }
  } finally {
    await session.release();
  }
  return ok(new Map([...seen].map(([name, histogram]) => [name, histogram.range()])));
}
