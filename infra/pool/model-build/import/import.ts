import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { ok } from '../../../../shared/result.ts';
import type { CipherName } from '../archive/cipher.ts';
import { readKey, splitNamed } from '../archive/key-reference.ts';
import { FORMAT, type Head, headShape, type Manifest, nameShape } from '../archive/manifest.ts';
import { writeArchive } from '../archive/write-archive.ts';
import { openBlob } from '../blob.ts';
import { type BuildResult, problem } from '../problem.ts';
import { scanFile } from '../scan/scan.ts';
import { type Draft, emptyDraft, join } from './draft.ts';
import { importNemo } from './from-nemo.ts';
import { importOnnx } from './from-onnx.ts';
import { importTriton } from './from-triton.ts';

export interface Import {
  /** A `.nemo`, a folder of a Triton repository, or an ONNX file. */
  readonly source: string;
  /** `path` or `path:key`. */
  readonly out: string;
  readonly name?: string;
  /** Class that an ONNX file was trained as. */
  readonly classes?: readonly string[];
  /** Role of an ONNX file in its pipeline; `network` by default. */
  readonly role?: string;
  /** Further networks: role → ONNX file. */
  readonly graphs?: Readonly<Record<string, string>>;
  /** Further files: part → file. */
  readonly parts?: Readonly<Record<string, string>>;
  readonly settings?: Readonly<Record<string, string>>;
  readonly cipher?: CipherName;
  readonly plain?: readonly string[];
  readonly force?: boolean;
}

export interface Imported {
  readonly file: string;
  readonly manifest: Manifest;
  readonly advice: readonly string[];
}

/** Scans a foreign model and, when all of it is allowed, writes it as an archive. */
export async function importModel(
  given: Import,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<BuildResult<Imported>> {
  const { path: out, key } = splitNamed(given.out);
  const bytes = key === undefined ? undefined : await readKey(key, environment);
  if (bytes && !bytes.ok) return bytes;
  const scratch = await mkdtemp(path.join(tmpdir(), 'auricle-import-'));
  try {
    const draft = await gather(given, scratch);
    if (!draft.ok) return draft;
    const { sources, advice, ...found } = draft.value;
    const head: Head = {
      format: FORMAT,
      kind: 'model',
      name: given.name ?? nameFrom(given.source),
      ...found,
      classes: [...found.classes],
      graphs: [...found.graphs],
      flows: [...found.flows],
      settings: { ...found.settings, ...given.settings },
    };
    if (!nameShape.safeParse(head.name).success)
      return problem('written', `"${head.name}" is no name: give one with --name`);
    const unfit = headShape.safeParse(head).error?.issues[0];
    if (unfit) return problem('bound', `${unfit.path.join('.')} of ${given.source}: ${unfit.message}`);
    const unknown = given.plain?.find((name) => !sources.some((one) => one.name === name));
    if (unknown !== undefined) return problem('written', `--plain ${unknown}: there is no such artifact`);
    const cipher = given.cipher ?? 'aes-256-gcm';
    const written = await writeArchive(
      out,
      {
        head,
        sources,
        ...(bytes && { key: { cipher, bytes: bytes.value } }),
        ...(given.plain && { plain: given.plain }),
      },
      given.force ?? false,
    );
    return written.ok ? ok({ file: out, manifest: written.value, advice }) : written;
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

const nameFrom = (source: string): string =>
  path.basename(path.resolve(source)).replace(/\.(nemo|onnx|tar|gz|tgz)$/gi, '');

async function gather(given: Import, scratch: string): Promise<BuildResult<Draft>> {
  const { source } = given;
  const found = await stat(source).catch(() => undefined);
  if (!found) return problem('unreadable', `${source} cannot be read`);
  const first = found.isDirectory()
    ? await importTriton(source)
    : /\.onnx$/i.test(source)
      ? await importOnnx(source, given.role ?? 'network')
      : /\.nemo$/i.test(source)
        ? await importNemo(source, scratch)
        : problem('unsupported', `${source} is no .nemo, no .onnx and no folder of a Triton repository`);
  if (!first.ok) return first;
  let draft = join(first.value, { ...emptyDraft, classes: given.classes ?? [] });
  for (const [role, file] of Object.entries(given.graphs ?? {})) {
    if (draft.graphs.some((graph) => graph.role === role))
      return problem('written', `the graph ${role} is given twice`);
    const graph = await importOnnx(file, role);
    if (!graph.ok) return graph;
    draft = join(draft, graph.value);
  }
  for (const [part, file] of Object.entries(given.parts ?? {})) {
    const added = await addPart(draft, part, file);
    if (!added.ok) return added;
    draft = added.value;
  }
  return ok(draft);
}

/** Adds a file for a part, or uses an existing artifact of this name. */
async function addPart(draft: Draft, part: string, file: string): Promise<BuildResult<Draft>> {
  const there = draft.sources.find(({ name }) => name === file);
  if (there) return ok(join(draft, { ...emptyDraft, parts: { [part]: file } }));
  const name = path.basename(file);
  if (draft.sources.some((one) => one.name === name))
    return problem('written', `two artifacts would be called ${name}`);
  const opened = await openBlob(file, name).catch(() => undefined);
  if (!opened) return problem('unreadable', `${file}, the ${part}, cannot be read`);
  const scanned = await scanFile(opened.blob);
  await opened.close();
  if (!scanned.ok) return scanned;
  return ok(join(draft, { ...emptyDraft, parts: { [part]: name }, sources: [{ name, file }] }));
}
