// Makes a revision with 8-bit weights from one with 16 or 32 bits: a separate repository with the same model
// names, so that it can replace the other.
import { randomBytes } from 'node:crypto';
import { cp, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { ok } from '../../../../shared/result.ts';
import { parseText } from '../../models/config/parse-text.ts';
import { printText } from '../../models/config/print-text.ts';
import type { ModelConfig } from '../../models/config/schema.ts';
import { type BuildResult, problem } from '../problem.ts';
import { type Quantised, quantise } from './quantise.ts';

export interface QuantiseRevision {
  readonly repository: string;
  /** Models that the revision consists of. */
  readonly parts: readonly string[];
  /** New repository; it must not exist. */
  readonly out: string;
  /** Recordings to calibrate with (static); without them dynamic. */
  readonly calibrate?: { readonly folder: string; readonly count?: number };
}

export interface QuantisedRevision {
  /** Result for each changed network. */
  readonly networks: readonly Quantised[];
}

/**
 * Networks below this share of the largest one's bytes stay unchanged: they compute features, and gain
 * nothing.
 */
const WORTH = 0.25;

interface Part {
  readonly name: string;
  readonly config: ModelConfig;
  /** Bytes of its network; 0 without one. */
  readonly bytes: number;
}

/** Makes the revision. Atomic. */
export async function quantiseRevision(given: QuantiseRevision): Promise<BuildResult<QuantisedRevision>> {
  const { repository, out } = given;
  const parts: Part[] = [];
  for (const name of given.parts) {
    const part = await readPart(repository, name);
    if (!part.ok) return part;
    parts.push(part.value);
  }
  const largest = Math.max(...parts.map(({ bytes }) => bytes));
  if (largest === 0) return problem('unsupported', `${repository}: none of these models has a network`);
  const staged = `${out}.${randomBytes(6).toString('hex')}.partial`;
  try {
    await mkdir(staged, { recursive: true });
    const networks: Quantised[] = [];
    for (const part of parts) {
      if (part.bytes < WORTH * largest) {
        await keep(repository, staged, part);
        continue;
      }
      const made = await change(given, staged, part, parts);
      if (!made.ok) return made;
      networks.push(made.value);
    }
    await rename(staged, out);
    return ok({ networks });
  } finally {
    await rm(staged, { recursive: true, force: true });
  }
}

async function readPart(repository: string, name: string): Promise<BuildResult<Part>> {
  const folder = path.join(repository, name);
  const text = await readFile(path.join(folder, 'config.pbtxt'), 'utf8').catch(() => undefined);
  if (text === undefined) return problem('unreadable', `${folder} has no config.pbtxt`);
  const config = parseText(text);
  if (!config.ok) return problem('unreadable', `${folder}: ${config.refusal.reason}`);
  const networks = (await readdir(folder, { recursive: true })).filter((file) => file.endsWith('.onnx'));
  const sizes = await Promise.all(networks.map((file) => stat(path.join(folder, file))));
  return ok({ name, config: config.value, bytes: Math.max(0, ...sizes.map(({ size }) => size)) });
}

/** Copies a model unchanged, except for the precision in an ensemble's parameters. */
async function keep(repository: string, staged: string, { name, config }: Part): Promise<void> {
  const to = path.join(staged, name);
  await cp(path.join(repository, name), to, { recursive: true });
  if (!config.ensemble_scheduling || config.parameters.precision === undefined) return;
  const parameters = { ...config.parameters, precision: { string_value: 'int8' } };
  await writeFile(path.join(to, 'config.pbtxt'), printText({ ...config, parameters }));
}

async function change(given: QuantiseRevision, staged: string, part: Part, parts: readonly Part[]) {
  const { repository, calibrate } = given;
  const features = parts.find(({ config }) => !config.ensemble_scheduling && takesSound(config));
  // No recording contains a network's state between steps: such a network is rounded dynamically.
  const remembers = part.config.sequence_batching !== undefined;
  const source = calibrate && { ...calibrate, ...(features && { features: path.join(repository, features.name) }) };
  return quantise({
    folder: path.join(repository, part.name),
    out: path.join(staged, part.name),
    ...(source && !remembers && { calibrate: source }),
  });
}

const takesSound = ({ input }: ModelConfig): boolean => input.some(({ name }) => name === 'AUDIO');
