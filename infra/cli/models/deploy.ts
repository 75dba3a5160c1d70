// auricle model deploy, auricle model init
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { ok } from '../../../shared/result.ts';
import { type Deployed, deploy } from '../../pool/model-build/deploy/deploy.ts';
import { readTarget, type Target } from '../../pool/model-build/deploy/targets.ts';
import { options } from '../../pool/model-build/pipeline/options.ts';
import { type BuildResult, problem } from '../../pool/model-build/problem.ts';
import type { Answer } from '../answer.ts';
import { one, type Words } from './words.ts';

const places = ['target', 'gpus', 'instances', 'accelerator'] as const;

function readTargets(given: Words): BuildResult<Target[]> {
  const more: Partial<Record<'gpus' | 'instances' | 'accelerator', string>> = {};
  for (const name of ['gpus', 'instances', 'accelerator'] as const) {
    const value = one(given, name);
    if (!value.ok) return value;
    if (value.value !== undefined) more[name] = value.value;
  }
  const targets: Target[] = [];
  for (const name of given.flags.target ?? ['cpu']) {
    // With several targets, `--gpus` applies to the target `gpu`.
    const { gpus, ...rest } = more;
    const several = (given.flags.target ?? []).length > 1 && name !== 'gpu';
    const target = readTarget(name, several ? rest : { ...rest, ...(gpus !== undefined && { gpus }) });
    if (!target.ok) return target;
    targets.push(target.value);
  }
  return ok(targets);
}

const describe = ({ models }: Deployed): string[] =>
  models.map(({ name, pipeline, task, folders }) => `${name}: ${pipeline}, ${task} (${folders.length} folders)`);

export async function runDeploy(given: Words): Promise<BuildResult<Answer>> {
  const settings = Object.fromEntries(
    Object.entries(given.flags)
      .filter(([name]) => !(places as readonly string[]).includes(name))
      .map(([name, values]) => [name, values.at(-1) ?? '']),
  );
  const unknown = Object.keys(settings).find((name) => !Object.hasOwn(options, name));
  if (unknown !== undefined) return problem('unsupported', `--${unknown} is not an option of any pipeline`);
  const targets = readTargets(given);
  if (!targets.ok) return targets;
  const archives = given.operands.slice(0, -1);
  const [repository = ''] = given.operands.slice(-1);
  const made = await deploy(
    { archives, repository, targets: targets.value, settings, force: given.force },
    process.env,
  );
  if (!made.ok) return made;
  return ok({ exit: 0, text: [...describe(made.value), `in ${repository}`].join('\n'), value: made.value });
}

/** M4: deploys every archive of a folder in sequence; skips deployed ones unless forced. */
export async function runInit(given: Words): Promise<BuildResult<Answer>> {
  const [folder, repository, key, targets] = [
    one(given, 'archives'),
    one(given, 'models'),
    one(given, 'key'),
    readTargets(given),
  ];
  if (!folder.ok || !repository.ok || !key.ok)
    return problem('written', '--archives, --models and --key are given once');
  if (!targets.ok) return targets;
  if (folder.value === undefined || repository.value === undefined)
    return problem('written', 'missing folders: --archives DIR --models DIR');
  const files = await readdir(folder.value).catch(() => undefined);
  if (!files) return problem('unreadable', `${folder.value} cannot be read`);
  const archives = files.filter((name) => /\.(apipeline|rmir)$/.test(name)).sort();
  if (archives.length === 0)
    return problem('unreadable', `${folder.value} has no .apipeline and no .rmir: auricle model build makes one`);
  const lines: string[] = [];
  const models: Deployed['models'][number][] = [];
  const kept: string[] = [];
  for (const name of archives) {
    const archive = `${path.join(folder.value, name)}${key.value === undefined ? '' : `:${key.value}`}`;
    const made = await deploy(
      { archives: [archive], repository: repository.value, targets: targets.value, force: given.force },
      process.env,
    );
    if (made.ok) {
      models.push(...made.value.models);
      lines.push(...describe(made.value));
    } else if (made.refusal.kind === 'exists' && !given.force) {
      kept.push(name);
      lines.push(`${name}: is deployed already; -f deploys it again`);
    } else return made;
  }
  const text = [...lines, `serve them: npm start -- --models ${repository.value}`].join('\n');
  return ok({ exit: 0, text, value: { repository: repository.value, models, kept } });
}
