import { applyRules, describeProblems, parseSettings } from '../shared/settings/problem.ts';
import { commonRules, equalKeyProblems, HOST_STORAGE, productionRules } from './check-settings.ts';
import { type Settings, settingsSchema } from './settings-schema.ts';

export type { Settings } from './settings-schema.ts';

export const settingNames = Object.keys(settingsSchema.shape) as readonly (keyof Settings)[];

/**
 * Returns the settings of this process.
 * @throws Error with every setting that is wrong, missing or unfit, and why; never with a value.
 */
export function readSettings(environment: Readonly<Record<string, string | undefined>>): Settings {
  const parsed = parseSettings(settingsSchema, environment);
  const host = { [HOST_STORAGE]: environment[HOST_STORAGE] };
  const values = { ...parsed, data: { ...parsed.data, ...host } };
  const development = parsed.data.MODE === 'development';
  const problems = development
    ? applyRules(commonRules, values)
    : [...applyRules(productionRules, values), ...equalKeyProblems(parsed.data)];
  if (problems.length > 0) throw new Error(`missing or unusable settings: ${describeProblems(problems)}`);
  const data = parsed.data as Settings;
  // Self-issued attestations are trusted only when both settings agree.
  const attestation = data.ATTESTATION;
  const selfIssued = development && attestation?.development === true;
  return { ...data, ...(attestation && { ATTESTATION: { ...attestation, development: selfIssued } }) };
}

export const currentSettings = (): Settings => readSettings(process.env);
