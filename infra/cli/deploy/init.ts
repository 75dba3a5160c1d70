// auricle deploy init: the keys and settings of an environment, as files of one folder.
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { writePrivate } from '../../identity/keys.ts';
import type { Answer } from '../answer.ts';
import type { Arguments } from '../options.ts';
import { type EnvironmentPlan, planEnvironment } from './environment.ts';
import { type EnvironmentKeys, makeKeys, signCheckToken, signPoolToken } from './make-keys.ts';
import {
  agentRows,
  edgeRows,
  formatRows,
  functionsRows,
  functionsSecretRows,
  trustFiles,
  unfilled,
} from './settings.ts';

/** Files that an operator brings, with the reason. */
const BROUGHT = {
  'trust/zone-keys.json': 'ZONE_KEYS of all zones, with the name of each key in the vault (agent README, "Zone keys")',
  'trust/model-signers.json': 'MODEL_SIGNERS, for the chart',
};

export async function initEnvironment(
  given: Pick<Arguments, 'domain' | 'operands' | 'out' | 'pools' | 'zones'>,
  nowS: number = Math.floor(Date.now() / 1_000),
): Promise<Answer> {
  const plan = planEnvironment(given);
  if ('exit' in plan) return plan;
  const folder = path.resolve(given.out ?? path.join('deploy', plan.name));
  const keys = await makeKeys(plan, folder);
  const texts = await textsOf(plan, keys, nowS);
  const made = [...texts].filter(([file]) => !existsSync(path.join(folder, file)));
  for (const [file, text] of made) writePrivate(path.join(folder, file), await text());
  const left = [...texts.keys()]
    .filter((file) => file.endsWith('.env'))
    .flatMap((file) => unfilled(readFileSync(path.join(folder, file), 'utf8')).map((one) => ({ file, ...one })));
  const brought = Object.entries(BROUGHT).filter(([file]) => !existsSync(path.join(folder, file)));
  const lines = [
    `${folder}: ${made.length} files made, ${texts.size - made.length} left as they were`,
    ...left.map(({ file, name, reason }) => `  ${file}  ${name}  ${reason}`),
    ...brought.map(([file, reason]) => `  ${file}  ${reason}`),
    left.length + brought.length > 0 ? 'Fill these in; the lines above say why.' : 'Every setting has a value.',
  ];
  return {
    exit: 0,
    text: lines.join('\n'),
    value: { folder, made: made.map(([file]) => file), unfilled: left, files: brought.map(([file]) => file) },
  };
}

type Texts = Map<string, () => string | Promise<string>>;

/** Returns the files of the folder beside the keys. */
async function textsOf(plan: EnvironmentPlan, keys: EnvironmentKeys, nowS: number): Promise<Texts> {
  const texts: Texts = new Map();
  // The folder holds private keys: git ignores all of it.
  texts.set('.gitignore', () => '*\n');
  texts.set('edge.env', () => formatRows('Edge: wrangler deploy --secrets-file edge.env', edgeRows(plan, keys)));
  for (const zone of plan.zones) {
    const at = `zones/${zone}`;
    texts.set(`${at}/functions.env`, () =>
      formatRows('Functions: parameter `settings` of infra/azure/main.bicep', functionsRows(plan, keys, zone)),
    );
    texts.set(`${at}/functions.secrets.env`, () =>
      formatRows('Functions: secrets of the vault, _ written as -', functionsSecretRows(keys, zone)),
    );
    texts.set(`${at}/check.token`, () => signCheckToken(plan, keys.check.privateKey, zone, nowS));
  }
  for (const pool of plan.pools) {
    const at = `pools/${pool.name}`;
    texts.set(`${at}/agent.env`, () => formatRows('Agent: docker run --env-file', agentRows(plan, keys, pool)));
    texts.set(`${at}/token`, () => signPoolToken(plan, keys.pools.privateKey, pool, nowS));
  }
  for (const [file, value] of Object.entries(trustFiles(keys))) texts.set(`trust/${file}`, () => JSON.stringify(value));
  return texts;
}
