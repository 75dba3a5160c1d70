// auricle model import
import { ok } from '../../../shared/result.ts';
import { importModel } from '../../pool/model-build/import/import.ts';
import { complaintAbout, options } from '../../pool/model-build/pipeline/options.ts';
import { type BuildResult, problem } from '../../pool/model-build/problem.ts';
import type { Answer } from '../answer.ts';
import { one, pairs, type Words } from './words.ts';

const ciphers = { aes: 'aes-256-gcm', sm4: 'sm4-ctr-hmac-sm3' } as const;

export async function runImport(given: Words): Promise<BuildResult<Answer>> {
  const [source = ''] = given.operands;
  const [out, name, cipher, role] = [one(given, 'out'), one(given, 'name'), one(given, 'cipher'), one(given, 'role')];
  const [graphs, parts, settings] = [pairs(given, 'graph'), pairs(given, 'artifact'), pairs(given, 'set')];
  for (const read of [out, name, cipher, role, graphs, parts, settings]) if (!read.ok) return read;
  if (!out.ok || !name.ok || !cipher.ok || !role.ok || !graphs.ok || !parts.ok || !settings.ok)
    throw new Error('unreachable');
  if (out.value === undefined) return problem('written', 'missing --out FILE[:KEY]');
  if (cipher.value !== undefined && !Object.hasOwn(ciphers, cipher.value))
    return problem('written', `--cipher ${cipher.value}: aes or sm4`);
  for (const [setting, value] of Object.entries(settings.value)) {
    const wrong = Object.hasOwn(options, setting)
      ? complaintAbout(setting, value)
      : `${setting} is not an option of any pipeline`;
    if (wrong !== undefined) return problem('written', `--set ${wrong}`);
  }
  const made = await importModel(
    {
      source,
      out: out.value,
      graphs: graphs.value,
      parts: parts.value,
      settings: settings.value,
      classes: given.flags.class ?? [],
      force: given.force,
      ...(role.value !== undefined && { role: role.value }),
      ...(name.value !== undefined && { name: name.value }),
      ...(cipher.value !== undefined && { cipher: ciphers[cipher.value as keyof typeof ciphers] }),
      ...(given.flags.plain && { plain: given.flags.plain }),
    },
    process.env,
  );
  if (!made.ok) return made;
  const { file, manifest, advice } = made.value;
  const networks =
    manifest.graphs.map(({ role }) => role).join(', ') || 'none (checkpoint only: export it, and add --graph)';
  const text = [`${file}: "${manifest.name}", networks ${networks}`, ...advice.map((line) => `note: ${line}`)].join(
    '\n',
  );
  const { classes, graphs: found, settings: declared, parts: beside } = manifest;
  const value = {
    file,
    name: manifest.name,
    classes,
    graphs: found.map(({ role }) => role),
    settings: declared,
    parts: beside,
    advice,
  };
  return ok({ exit: 0, text, value });
}
