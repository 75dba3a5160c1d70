// Layouts of MIG instances against the geometry of the GPUs, the pools on them, and the order of a regrouping.
import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { CHART, example, merge, only, render, type Values } from '../helm.ts';

const MIG = path.join(CHART, 'mig');
const read = (file: string) => parse(readFileSync(path.join(MIG, file), 'utf8')) as Values;

interface Profile {
  readonly compute: number;
  /** Memory slices, and the first one of each place: NVIDIA MIG User Guide, "Supported MIG Profiles". */
  readonly memory: number;
  readonly starts: readonly number[];
}
/** Compute slices of a GPU. Its 8 memory slices bound the places. */
const COMPUTE_SLICES = 7;
const shapes: Readonly<Record<string, Profile>> = {
  '1g': { compute: 1, memory: 1, starts: [0, 1, 2, 3, 4, 5, 6] },
  '2g': { compute: 2, memory: 2, starts: [0, 2, 4] },
  '3g': { compute: 3, memory: 4, starts: [0, 4] },
  '4g': { compute: 4, memory: 4, starts: [0] },
  '7g': { compute: 7, memory: 8, starts: [0] },
};
/** Memory in the names of profiles, GB, by family and compute slices. */
const families: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  'a100-40': { '1g': 5, '2g': 10, '3g': 20, '4g': 20, '7g': 40 },
  '80gb': { '1g': 10, '2g': 20, '3g': 40, '4g': 40, '7g': 80 },
  h200: { '1g': 18, '2g': 35, '3g': 71, '4g': 71, '7g': 141 },
};

/** Reports whether instances have disjoint places on one GPU. */
function fits(instances: readonly string[], taken: ReadonlySet<number> = new Set()): boolean {
  const [first, ...others] = instances;
  if (first === undefined) return true;
  const { memory, starts } = shapes[first] as Profile;
  return starts.some((start) => {
    const own = Array.from({ length: memory }, (_, index) => start + index);
    return own.every((slice) => !taken.has(slice)) && fits(others, new Set([...taken, ...own]));
  });
}
const isPossible = (instances: readonly string[]): boolean => {
  const compute = instances.reduce((sum, one) => sum + (shapes[one]?.compute ?? COMPUTE_SLICES + 1), 0);
  return compute <= COMPUTE_SLICES && fits(instances);
};

type Devices = Readonly<Record<string, number>>;
const configs = read('layouts.yaml')['mig-configs'] as Record<string, { 'mig-devices'?: Devices }[]>;
const layouts = Object.entries(configs).flatMap(([name, [config]]) =>
  config?.['mig-devices'] ? [{ name, devices: config['mig-devices'] }] : [],
);

describe('A12 a MIG layout', () => {
  it.each([
    [['1g', '1g', '1g', '1g', '1g', '1g', '1g'], true],
    [['4g', '2g', '1g'], true],
    [['3g', '3g', '1g'], false],
    [['4g', '4g'], false],
    [['2g', '2g', '2g', '2g'], false],
  ])('%s is possible: %s', (instances, expected) => expect(isPossible(instances)).toBe(expected));

  it.each(layouts)('$name fits 7 compute and 8 memory slices', ({ name, devices }) => {
    const family = Object.keys(families).find((one) => name.startsWith(`${one}-`)) ?? '';
    const instances = Object.entries(devices).flatMap(([profile, count]) => {
      const [slices = '', memory] = profile.split('.');
      expect(memory).toBe(`${families[family]?.[slices]}gb`);
      return Array.from({ length: count }, () => slices);
    });
    expect(isPossible(instances)).toBe(true);
  });
});

describe('A12 a pool on MIG instances', () => {
  const known = new Set(layouts.flatMap(({ devices }) => Object.keys(devices)));

  it.each(readdirSync(path.join(MIG, 'pools')))('%s takes one instance and reports it to the edge', async (file) => {
    const manifests = await render(merge(example('aks-triton'), read(`pools/${file}`)));
    const pod = JSON.stringify(only(manifests, 'StatefulSet').spec);
    const [, profile = ''] = /"nvidia\.com\/mig-([^"]+)":"?1"?[,}]/.exec(pod) ?? [];
    expect(known).toContain(profile);
    const [slices] = profile.split('.');
    expect(pod).toContain(`{"name":"AURICLE_DEVICE","value":"a100-80-${slices}"}`);
    expect(pod).toContain(`{"name":"AURICLE_TARGET","value":"mig-${profile}"}`);
  });
});

describe('A19 a regrouping', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'auricle-mig-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  /** Runs the script with a kubectl that records its calls; `answers` are lines of shell. */
  async function regroup(answers: string) {
    const calls = path.join(folder, 'calls');
    const kubectl = `#!/bin/sh\necho "$1 $2 $4" >>"${calls}"\ncase "$*" in\n${answers}\nesac\n`;
    writeFileSync(path.join(folder, 'kubectl'), kubectl, { mode: 0o755 });
    const env = { ...process.env, PATH: `${folder}:${process.env.PATH}`, POLL_SECONDS: '0' };
    const code = await new Promise((resolve) => {
      execFile(path.join(MIG, 'regroup.sh'), ['node-1', '80gb-mixed'], { env }, (error) => resolve(error?.code ?? 0));
    });
    return { code, calls: readFileSync(calls, 'utf8').split('\n').filter(Boolean) };
  }

  it('sets the layout after the drain, and admits pods after success', async () => {
    const { code, calls } = await regroup('get*) echo success ;;');
    expect(code).toBe(0);
    const order = calls.filter((call) => !call.startsWith('get')).map((call) => call.trim());
    expect(order).toEqual([
      'cordon node-1',
      'drain node-1 --delete-emptydir-data',
      'label node nvidia.com/mig.config.state=pending',
      'label node nvidia.com/mig.config=80gb-mixed',
      'uncordon node-1',
    ]);
  });

  it('leaves the layout alone while a pod does not leave', async () => {
    const { code, calls } = await regroup('drain*) exit 1 ;;');
    expect(code).toBe(1);
    expect(calls.join('\n')).not.toContain('mig.config');
  });

  it('keeps the node cordoned after a failure', async () => {
    const { code, calls } = await regroup('get*) echo failed ;;');
    expect(code).toBe(1);
    expect(calls.join('\n')).not.toContain('uncordon');
  });
});
