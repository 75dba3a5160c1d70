// auricle model inspect
import { ok } from '../../../shared/result.ts';
import { splitNamed } from '../../pool/model-build/archive/key-reference.ts';
import type { Manifest } from '../../pool/model-build/archive/manifest.ts';
import { openArchive } from '../../pool/model-build/archive/open-archive.ts';
import type { BuildResult } from '../../pool/model-build/problem.ts';
import type { Answer } from '../answer.ts';
import type { Words } from './words.ts';

/** Describes an archive and checks every artifact that can be opened. */
export async function runInspect(given: Words): Promise<BuildResult<Answer>> {
  const [named = ''] = given.operands;
  const opened = await openArchive(named, process.env);
  if (!opened.ok) return opened;
  const archive = opened.value;
  try {
    const { manifest } = archive;
    const hasKey = splitNamed(named).key !== undefined;
    for (const { name, nonce } of manifest.artifacts) {
      if (nonce !== undefined && !hasKey) continue;
      const checked = await archive.check(name);
      if (!checked.ok) return checked;
    }
    const checked = manifest.seal && !hasKey ? 'what is not sealed' : 'everything';
    const text = `${describe(manifest)}\nsha256:${archive.digest}\nchecked: ${checked}`;
    return ok({ exit: 0, text, value: { digest: `sha256:${archive.digest}`, checked, manifest } });
  } finally {
    await archive.close();
  }
}

function describe({ kind, name, pipeline, classes, graphs, settings, parts, artifacts, seal }: Manifest): string {
  const tensors = (list: Manifest['graphs'][number]['input']) =>
    list
      .map(({ name: called, data_type, dims }) => `${called} ${data_type.replace('TYPE_', '')}[${dims.join(',')}]`)
      .join(', ');
  const lines = [
    `${kind} "${name}"${pipeline ? `, ${pipeline}` : ''}${seal ? `, sealed with ${seal.cipher}` : ''}`,
    ...(classes.length > 0 ? [`trained as ${classes.join(', ')}`] : []),
    ...graphs.map(
      ({ role, precision, input, output }) => `network ${role} (${precision}): ${tensors(input)} → ${tensors(output)}`,
    ),
    ...Object.entries(settings).map(([key, value]) => `${key}=${value}`),
    ...Object.entries(parts).map(([part, artifact]) => `${part}: ${artifact}`),
    ...artifacts.map(
      ({ name: called, bytes, nonce }) => `${String(bytes).padStart(12)} ${called}${nonce ? ' (sealed)' : ''}`,
    ),
  ];
  return lines.join('\n');
}
