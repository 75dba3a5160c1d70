import { expect, it } from 'vitest';
import { createGpuReaders, gpuUseOf, powerOf } from '../../../../infra/pool/agent/telemetry/power.ts';

const page = (...watts: number[]) =>
  watts
    .map(
      (usage, at) =>
        `nv_gpu_power_usage{gpu_uuid="GPU-${at}"} ${usage}\nnv_gpu_power_limit{gpu_uuid="GPU-${at}"} 700\n`,
    )
    .join('');

it('A14: the share sums usage and limits of all GPUs', () => {
  expect(powerOf(`# HELP nv_gpu_power_usage GPU power usage (watts)\n${page(490, 630)}`)).toBe(0.8);
  expect(powerOf(page(1_400))).toBe(2);
});

it('A14: a page without gauges or with a limit of zero has no share', () => {
  expect(powerOf('nv_inference_count{model="a"} 3\n')).toBeUndefined();
  expect(powerOf('nv_gpu_power_usage{gpu_uuid="a"} 3\nnv_gpu_power_limit{gpu_uuid="a"} 0\n')).toBeUndefined();
});

it('A14: an agent reports the last reading until it is stale', async () => {
  let at = 0;
  let served: string | undefined = page(350);
  const { power } = createGpuReaders(
    async () => served,
    () => at,
  );
  expect(power()).toBeUndefined();
  await Promise.resolve();
  await Promise.resolve();
  expect(power()).toBe(0.5);
  served = undefined;
  at = 14_999;
  expect(power()).toBe(0.5);
  await Promise.resolve();
  await Promise.resolve();
  at = 15_000;
  expect(power()).toBeUndefined();
});

it('A33: the use of GPUs is their mean, where the page shows it', () => {
  expect(gpuUseOf('nv_gpu_utilization{gpu_uuid="a"} 0.9\nnv_gpu_utilization{gpu_uuid="b"} 0.5\n')).toBe(0.7);
  expect(gpuUseOf(page(350))).toBeUndefined();
});
