import { ok } from '../../../../shared/result.ts';
import type { Blob } from '../blob.ts';
import type { OnnxFacts } from '../onnx/read-onnx.ts';
import { type BuildResult, problem } from '../problem.ts';
import { scanCheckpoint } from './checkpoint.ts';
import { scanNumpy, scanSafetensors, scanSentencePiece, scanText } from './data-file.ts';
import { scanOnnx } from './onnx-file.ts';

export const kinds = ['checkpoint', 'onnx', 'text', 'sentencepiece', 'safetensors', 'numpy'] as const;
export type Kind = (typeof kinds)[number];

export interface Scanned {
  readonly kind: Kind;
  readonly onnx?: OnnxFacts;
}

/** Kinds of files by name. The content is then checked: a name alone proves nothing. */
const endings: readonly (readonly [RegExp, Kind])[] = [
  [/\.(ckpt|pt|pth|bin|pkl)$/i, 'checkpoint'],
  [/\.onnx$/i, 'onnx'],
  [/\.safetensors$/i, 'safetensors'],
  [/\.npy$/i, 'numpy'],
  [/\.model$/i, 'sentencepiece'],
  [/\.(ya?ml|json|txt|vocab|csv|tsv|arpa|lm|dict|list|labels|md)(\.gz)?$/i, 'text'],
  [/(^|\/)(LICENSE|README|vocab|tokens|heteronyms-[\w.]+|cmudict-[\w.]+)$/, 'text'],
];

const scanners: Record<Kind, (blob: Blob) => Promise<BuildResult<OnnxFacts | undefined>>> = {
  checkpoint: scanCheckpoint,
  onnx: scanOnnx,
  text: scanText,
  sentencepiece: scanSentencePiece,
  safetensors: scanSafetensors,
  numpy: scanNumpy,
};

/** Scans one foreign file. A file of unknown kind is refused. */
export async function scanFile(blob: Blob): Promise<BuildResult<Scanned>> {
  const kind = endings.find(([pattern]) => pattern.test(blob.name))?.[1];
  if (kind === undefined) return problem('unsafe', `${blob.name} is of no kind this tool can look into`);
  const found = await scanners[kind](blob);
  if (!found.ok) return found;
  return ok({ kind, ...(found.value && { onnx: found.value }) });
}
