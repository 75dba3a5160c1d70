import { describe, expect, it } from 'vitest';
import { neededSteps, planEnsemble } from '../../../infra/pool/engine/ensemble/plan.ts';
import { parseText } from '../../../infra/pool/models/config/parse-text.ts';
import { settle } from '../../../infra/pool/models/config/settle.ts';

function configOf(name: string, text: string) {
  const parsed = parseText(text);
  const config = parsed.ok ? settle(parsed.value, name) : parsed;
  if (!config.ok) throw new Error(config.refusal.reason);
  return config.value;
}
const tensor = (name: string, type = 'FP32', dims = '-1') =>
  `{ name: "${name}" data_type: TYPE_${type} dims: [ ${dims} ] }`;
const part = configOf(
  'part',
  `max_batch_size: 4 input ${tensor('I')} output [ ${tensor('O')}, ${tensor('N', 'INT32', '1')} ]`,
);
const single = configOf('single', `input ${tensor('I')} output ${tensor('O')}`);
const known: Record<string, typeof part> = { part, single };

const step = (model: string, from: string, to: string, more = '') =>
  `{ model_name: "${model}" model_version: -1 input_map { key: "I" value: "${from}" } output_map { key: "O" value: "${to}" } ${more} }`;

function plan(steps: string, { input = tensor('IN'), output = tensor('OUT'), batch = 4 } = {}) {
  const ensemble = configOf(
    'whole',
    `platform: "ensemble" max_batch_size: ${batch} input ${input} output ${output} ensemble_scheduling { step [ ${steps} ] }`,
  );
  return planEnsemble(ensemble, ({ model_name }) => known[model_name]);
}

describe('A18: planning an ensemble', () => {
  it('orders steps by their data', () => {
    const planned = plan([step('part', 'b', 'OUT'), step('part', 'a', 'b'), step('part', 'IN', 'a')].join(','));
    expect(planned.ok && planned.value.steps.map(({ output_map }) => output_map.O)).toEqual(['a', 'b', 'OUT']);
  });

  it.each([
    ['a model that is not loaded', step('nobody', 'IN', 'OUT'), "depends on 'nobody' which has no loaded version"],
    ['a circle', [step('part', 'b', 'a'), step('part', 'a', 'b'), step('part', 'IN', 'OUT')].join(','), 'circle'],
    ['a tensor nobody writes', [step('part', 'ghost', 'OUT')].join(','), "no step writes the tensor 'ghost'"],
    ['an output nobody writes', step('part', 'IN', 'elsewhere'), "no step writes the output 'OUT'"],
    ['a tensor written twice', [step('part', 'IN', 'OUT'), step('part', 'IN', 'OUT')].join(','), 'written twice'],
    [
      'an input the model lacks',
      step('part', 'IN', 'OUT', 'input_map { key: "J" value: "IN" }'),
      "non-existing input 'J'",
    ],
    [
      'an output the model lacks',
      step('part', 'IN', 'x', 'output_map { key: "P" value: "OUT" }'),
      "non-existing output 'P'",
    ],
    [
      'types that differ',
      `{ model_name: "part" input_map { key: "I" value: "IN" } output_map { key: "N" value: "OUT" } }`,
      'INT32',
    ],
    ['a model with a smaller batch', step('single', 'IN', 'OUT'), 'only allows 0'],
  ])('refuses %s', (_, steps, expected) => {
    const planned = plan(steps);
    expect(planned.ok ? '' : planned.refusal.reason).toContain(expected);
  });

  it('refuses an input that no ensemble tensor feeds', () => {
    const planned = planEnsemble(
      configOf(
        'whole',
        `platform: "ensemble" max_batch_size: 1 input ${tensor('IN')} output ${tensor('OUT')}
        ensemble_scheduling { step ${step('two', 'IN', 'OUT')} }`,
      ),
      () => configOf('two', `max_batch_size: 4 input [ ${tensor('I')}, ${tensor('J')} ] output ${tensor('O')}`),
    );
    expect(planned.ok ? '' : planned.refusal.reason).toContain("'J' in model 'two' is not mapped");
  });

  it('runs only the steps that the wanted outputs need', () => {
    const planned = plan([step('part', 'IN', 'a'), step('part', 'a', 'OUT'), step('part', 'IN', 'SIDE')].join(','), {
      output: `[ ${tensor('OUT')}, ${tensor('SIDE')} ]`,
    });
    if (!planned.ok) throw new Error(planned.refusal.reason);
    const steps = (...outputs: string[]) => neededSteps(planned.value, outputs).map(({ output_map }) => output_map.O);
    expect(steps('SIDE')).toEqual(['SIDE']);
    expect(steps('OUT')).toEqual(['a', 'OUT']);
    expect(steps('OUT', 'SIDE')).toHaveLength(3);
  });
});
