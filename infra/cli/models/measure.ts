// auricle model measure
import { writeFile } from 'node:fs/promises';
import { type Evidence, evaluateEvidence, isSteady, slowestOf } from '../../../shared/registry/evidence.ts';
import { evaluateQuality, isEnough, qualityRule } from '../../../shared/registry/quality.ts';
import { ok } from '../../../shared/result.ts';
import { MEASURE_PARALLEL_MAX } from '../../pool/model-build/measure/listen.ts';
import { type Against, type Measured, measureRevision } from '../../pool/model-build/measure/measure.ts';
import { type BuildResult, problem } from '../../pool/model-build/problem.ts';
import { writeWhole } from '../../pool/model-build/write-whole.ts';
import type { Answer } from '../answer.ts';
import { printLine } from '../environment.ts';
import { readFlags, type Words } from './words.ts';

const flags = ['out', 'engine', 'recordings', 'sla', 'parallel', 'against', 'against-models', 'language'] as const;

/** Name and version of this tool in evidence. */
const TOOL = 'auricle model measure 0.1.0';

/** The address of an engine, as requested. */
function readEngine(
  name: string,
  text: string,
): BuildResult<{ readonly url: string; readonly model: string | undefined }> {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  // A URL may end in the colon of a port that it lacks.
  if (url?.protocol !== 'http:' || /^http:\/\/[^/?#]*:([/?#]|$)/i.test(text))
    return problem('written', `--${name} must be http://HOST:PORT of an engine, not ${text}`);
  const model = decodeURIComponent(url.hash.slice(1)) || undefined;
  url.hash = '';
  return ok({ url: url.href.replace(/\/+$/, ''), model });
}

function readAgainst(text: string, name: string, repository: string): BuildResult<Against | 'none'> {
  if (text === 'none') return ok(text);
  const read = readEngine('against', text);
  return read.ok ? ok({ engine: read.value.url, model: read.value.model ?? name, repository }) : read;
}

/** A15: what the first gate asks for, measured and written for `auricle model promote … --evidence`. */
export async function runMeasure(given: Words): Promise<BuildResult<Answer>> {
  const parsed = readFlags(given, flags);
  if (!parsed.ok) return parsed;
  const read = parsed.value;
  const [repository = '', name = ''] = given.operands;
  const { out, recordings, language, parallel = '1' } = read;
  if (out === undefined) return problem('written', 'missing --out FILE');
  const sla = read.sla === undefined ? undefined : Number(read.sla);
  if (sla !== undefined && !(sla > 0)) return problem('written', `--sla ${read.sla}: milliseconds`);
  if (!/^[1-9]\d*$/.test(parallel) || Number(parallel) > MEASURE_PARALLEL_MAX)
    return problem('written', `--parallel ${parallel}: 1 to ${MEASURE_PARALLEL_MAX}`);
  const engine = read.engine === undefined ? ok(undefined) : readEngine('engine', read.engine);
  if (!engine.ok) return engine;
  const against =
    read.against === undefined ? ok(undefined) : readAgainst(read.against, name, read['against-models'] ?? repository);
  if (!against.ok) return against;
  const made = await writeWhole(out, given.force, async (temporary) => {
    const measured = await measureRevision({
      repository,
      name,
      parallel: Number(parallel),
      tool: TOOL,
      log: printLine,
      ...(engine.value && { engine: engine.value.url }),
      ...(sla !== undefined && { sla }),
      ...(recordings !== undefined && { recordings }),
      ...(against.value && { against: against.value }),
      ...(language !== undefined && { language }),
    });
    if (measured.ok) await writeFile(temporary, `${JSON.stringify(measured.value.evidence, undefined, 2)}\n`);
    return measured;
  });
  return made.ok ? ok(answerOf(out, made.value)) : made;
}

function answerOf(out: string, { revision, evidence, notes }: Measured): Answer {
  const judged = evidence.map((piece) => ({ kind: piece.kind, verdict: evaluateEvidence(piece, Date.now()) }));
  const lines = evidence.map((piece, at) => `${piece.kind} ${judged[at]?.verdict}${describe(piece)}`);
  const text = [revision, ...lines, ...notes.map((note) => `note: ${note}`), out].join('\n');
  return { exit: 0, text, value: { file: out, revision, judged, evidence, notes } };
}

function describe(piece: Evidence): string {
  if (piece.kind === 'latency') {
    const found = slowestOf(piece.windows).toPrecision(4);
    const held = `held against ${piece.sla} ms`;
    const agree = isSteady(piece.windows) ? '' : ', which did not agree: the machine is busy with other work';
    return `: ${found} ms for a second of sound, ${held}, in ${piece.windows.length} windows${agree}`;
  }
  if (piece.kind === 'quality') {
    const { before, after } = evaluateQuality(piece.speakers, piece.seed);
    const percent = (rate: number) => `${(100 * rate).toFixed(2)} %`;
    const few = `, too few: ${qualityRule.speakers} with ${qualityRule.utterances} recordings each are enough`;
    const speakers = `${piece.speakers.length} speakers${isEnough(piece.speakers) ? '' : few}`;
    const streams = piece.streamed ? ' in live streams' : '';
    return `: ${percent(after)} of the words misheard${streams}, ${percent(before)} before; ${speakers}`;
  }
  return 'facts' in piece && piece.facts.problem !== undefined ? `: ${piece.facts.problem}` : '';
}
