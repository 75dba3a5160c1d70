import { createHash, randomBytes } from 'node:crypto';
import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { ok } from '../../../../shared/result.ts';
import { createNames } from '../../models/config/names.ts';
import { printText } from '../../models/config/print-text.ts';
import { type Archive, openArchive } from '../archive/open-archive.ts';
import { complaintAbout, whyNot } from '../pipeline/options.ts';
import { isPipeline } from '../pipeline/pipelines.ts';
import { checkTiming } from '../pipeline/timing.ts';
import { type BuildResult, problem } from '../problem.ts';
import { isFolderName } from '../scan/config-file.ts';
import { scanFiles } from '../scan/scan-folder.ts';
import { filesIn, MARK, mayPlace, placeModels } from './place-models.ts';
import { checkPlaces, type PlannedModel, planRepository } from './plan-repository.ts';
import { configName, type Target } from './targets.ts';

export interface Deploy {
  /** `path` or `path:key`. */
  readonly archives: readonly string[];
  /** Triton's model repository. */
  readonly repository: string;
  /** The first target determines `config.pbtxt`, the others `configs/NAME.pbtxt`. */
  readonly targets: readonly Target[];
  /** Build options that replace those of the archives. */
  readonly settings?: Readonly<Record<string, string>>;
  readonly force?: boolean;
}

export interface Deployed {
  readonly repository: string;
  readonly models: readonly {
    readonly name: string;
    readonly pipeline: string;
    readonly task: string;
    readonly folders: readonly string[];
  }[];
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Unpacks pipelines into a model repository: networks, ensembles, configurations. Atomic. */
export async function deploy(given: Deploy, environment: Environment): Promise<BuildResult<Deployed>> {
  const archives: Archive[] = [];
  const staged = await stageFor(given.repository);
  try {
    for (const named of given.archives) {
      const opened = await openArchive(named, environment);
      if (!opened.ok) return opened;
      archives.push(opened.value);
    }
    const plans = planAll(given, archives);
    if (!plans.ok) return plans;
    const folders = plans.value.flatMap(({ name, models }) => models.map((model) => [model.name, name] as const));
    // Names that differ by case only are one folder on some disks.
    const names = createNames();
    const twice = folders.find(([folder]) => names.add(folder, 'file') !== undefined);
    if (twice) return problem('artifact', `two archives make a model ${twice[0]}: build one with another --name`);
    const owners = new Map(folders);
    const allowed = await mayPlace(given.repository, owners, given.force ?? false);
    if (!allowed.ok) return allowed;
    for (const plan of plans.value) {
      for (const model of plan.models) {
        const written = await writeModel(plan, model, staged, given.targets);
        if (!written.ok) return written;
      }
    }
    const placed = await placeModels(given.repository, staged, owners, given.force ?? false);
    if (!placed.ok) return placed;
    const models = plans.value.map(({ archive: { manifest }, name, models: own }) => ({
      name,
      pipeline: manifest.pipeline ?? '',
      task: manifest.settings.task ?? 'infer',
      folders: own.map((model) => model.name),
    }));
    return ok({ repository: given.repository, models });
  } finally {
    for (const archive of archives) await archive.close();
    await rm(staged, { recursive: true, force: true });
  }
}

/**
 * Makes the staging folder beside the repository, or inside it when the repository is its own file system:
 * finished folders are moved, not copied.
 */
async function stageFor(repository: string): Promise<string> {
  const name = `.${path.basename(path.resolve(repository))}.${randomBytes(6).toString('hex')}.partial`;
  const parent = path.dirname(path.resolve(repository));
  await mkdir(parent, { recursive: true });
  const there = await stat(repository).catch(() => undefined);
  const beside = !there || there.dev === (await stat(parent)).dev;
  const staged = path.join(beside ? parent : repository, name);
  await mkdir(staged);
  return staged;
}

type Plan = { readonly archive: Archive; readonly name: string; readonly models: readonly PlannedModel[] };

function planAll({ targets, settings = {} }: Deploy, archives: readonly Archive[]): BuildResult<Plan[]> {
  const plans: Plan[] = [];
  for (const archive of archives) {
    const { manifest, file } = archive;
    const { pipeline = '' } = manifest;
    if (manifest.kind !== 'pipeline' || !isPipeline(pipeline))
      return problem('artifact', `${file} is no pipeline: build one of it first`);
    for (const [name, value] of Object.entries(settings)) {
      const wrong = whyNot(name, pipeline) ?? complaintAbout(name, value);
      if (wrong !== undefined) return problem('unsupported', `${file}: ${wrong}`);
    }
    const head = { ...manifest, settings: { ...manifest.settings, ...settings }, name: settings.name ?? manifest.name };
    const timing = checkTiming(head.settings);
    if (!timing.ok) return timing;
    const models = planRepository(head, targets);
    const unfit = models.find((model) => !isFolderName(model.name));
    if (unfit) return problem('written', `${file}: "${unfit.name}" is no name for a model`);
    const places = checkPlaces(head);
    if (!places.ok) return problem(places.refusal.kind, `${file}: ${places.refusal.text}`);
    plans.push({ archive, name: head.name, models });
  }
  return ok(plans);
}

/** Writes one folder of a repository and scans it by the rules of the first gate. */
async function writeModel(
  { archive, name }: Plan,
  { name: model, configs, files }: PlannedModel,
  staged: string,
  targets: readonly Target[],
): Promise<BuildResult<undefined>> {
  const folder = path.join(staged, model);
  // Triton wants a version folder of ensembles, too.
  await mkdir(path.join(folder, '1'), { recursive: true });
  for (const [file, artifact] of Object.entries(files)) {
    const extracted = await archive.extract(artifact, path.join(folder, file));
    if (!extracted.ok) return problem(extracted.refusal.kind, extracted.refusal.text);
  }
  for (const [at, config] of configs.entries()) {
    const file = at === 0 ? 'config.pbtxt' : `configs/${configName(targets[at] as Target)}.pbtxt`;
    await mkdir(path.dirname(path.join(folder, file)), { recursive: true });
    await writeFile(path.join(folder, file), printText(config));
  }
  const written = await filesIn(folder);
  const scanned = await scanFiles(
    staged,
    written.map((file) => `${model}/${file}`),
  );
  if (!scanned.ok) return problem(scanned.refusal.kind, `${archive.file}: ${scanned.refusal.text}`);
  await writeMark(archive, name, folder, written);
  return ok(undefined);
}

async function writeMark(archive: Archive, name: string, folder: string, files: readonly string[]): Promise<void> {
  const configuration = createHash('sha256')
    .update(await readFile(path.join(folder, 'config.pbtxt')))
    .digest('hex');
  const parameters = {
    archive: `sha256:${archive.digest}`,
    name,
    pipeline: archive.manifest.pipeline,
    configuration,
    files: [...files, MARK],
  };
  await writeFile(path.join(folder, MARK), `${JSON.stringify(parameters, undefined, 2)}\n`);
}
