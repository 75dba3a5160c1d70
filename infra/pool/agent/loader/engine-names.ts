import { createHash } from 'node:crypto';
import { printText } from '../../models/config/print-text.ts';
import type { ModelConfig } from '../../models/config/schema.ts';

interface NamedFile {
  readonly name: string;
  readonly digest: string;
}

/** Returns the part of a revision, a model of the repository, that a file belongs to. */
export const partOf = (file: string): string => file.slice(0, file.indexOf('/'));

/** Reports whether a file of a revision is the configuration of a part. */
export const isConfig = (file: string): boolean => /^[^/]+\/config\.pbtxt$/.test(file);

/** Reports whether a name at the engine is one of `engineNames`. */
export const isEngineName = (name: string): boolean => /\.[0-9a-f]{12}$/.test(name);

/** Models that a configuration names: steps, the streaming model, and folders of files (`../NAME/tokens.txt`). */
function referencesOf({ ensemble_scheduling: ensemble, parameters }: ModelConfig): string[] {
  const texts = Object.entries(parameters).flatMap(([key, { string_value: text }]) =>
    key === 'stream_model' ? [text] : (/^\.\.\/([^/]+)/.exec(text)?.slice(1) ?? []),
  );
  return [...(ensemble?.step ?? []).map(({ model_name: step }) => step), ...texts];
}

/**
 * Names the parts of a revision at the engine: a part's own name, a dot, and 12 characters of the digest of its files
 * and of the parts that it names. Equal parts of two revisions have one name and are loaded once.
 */
export function engineNames(
  files: readonly NamedFile[],
  configs: ReadonlyMap<string, ModelConfig>,
): ReadonlyMap<string, string> {
  const parts = new Set(files.map(({ name }) => partOf(name)));
  const names = new Map<string, string>();
  const nameOf = (part: string, above: readonly string[]): string => {
    const known = names.get(part);
    if (known !== undefined || above.includes(part)) return known ?? part;
    const own = files.filter(({ name }) => partOf(name) === part).map(({ name, digest }) => `${digest} ${name}`);
    const config = configs.get(part);
    const references = config ? referencesOf(config).filter((one) => parts.has(one)) : [];
    const lines = [...own.sort(), ...references.map((one) => nameOf(one, [...above, part]))];
    const name = `${part}.${createHash('sha256').update(lines.join('\n')).digest('hex').slice(0, 12)}`;
    names.set(part, name);
    return name;
  };
  for (const part of parts) nameOf(part, []);
  return names;
}

/** Returns the text of a part's configuration with the names of the engine. */
export function renameConfig(config: ModelConfig, part: string, names: ReadonlyMap<string, string>): string {
  const rename = (one: string) => names.get(one) ?? one;
  const { ensemble_scheduling: ensemble } = config;
  const parameters = Object.entries(config.parameters).map(([key, value]) => {
    const text = value.string_value;
    const renamed =
      key === 'stream_model' ? rename(text) : text.replace(/^(\.\.\/)([^/]+)/, (_, up, of) => up + rename(of));
    return [key, { ...value, string_value: renamed }] as const;
  });
  return printText({
    ...config,
    name: rename(part),
    ...(ensemble && {
      ensemble_scheduling: {
        ...ensemble,
        step: ensemble.step.map((step) => ({ ...step, model_name: rename(step.model_name) })),
      },
    }),
    parameters: Object.fromEntries(parameters),
  });
}
