// Measurements for the first gate of a revision: evidence in the form of statements, evaluated again by every
// reader.
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { fromBase64 } from '../../../../shared/base64.ts';
import { jsonOf } from '../../../../shared/json-text.ts';
import type { Evidence } from '../../../../shared/registry/evidence.ts';
import { bundle } from '../../../../shared/registry/signature-bundle.ts';
import { readPayload } from '../../../../shared/registry/signature-envelope.ts';
import { readManifest } from '../../../../shared/registry/signature-manifest.ts';
import type { Sla } from '../../../../shared/registry/sla.ts';
import { ok } from '../../../../shared/result.ts';
import { createKserveEngine } from '../../agent/engine/kserve.ts';
import { isSpeechModel, type SpeechModel } from '../../agent/models/models.ts';
import { createRecognisers } from '../../agent/models/recogniser.ts';
import { type BuildResult, problem } from '../problem.ts';
import { checkLoad, engineClient } from './check-load.ts';
import { MEASURE_CONCURRENT_MAX, MEASURE_STREAMS, MEASURE_WINDOW_REQUESTS } from './limits.ts';
import { type Listener, openListener, readCut, type Transcriber, transcribeAll } from './listen.ts';
import { openLiveTranscriber } from './listen-live.ts';
import { type Cut, type Latency, measureWindows } from './measure-latency.ts';
import { measureQuality, type Quality } from './measure-quality.ts';
import { type RecordingList, readRecordings, spread } from './recordings.ts';
import { type Revision, readRevision } from './revision.ts';
import { scanRevision } from './scan-revision.ts';

/** Another served revision, and the folders that define its decoding. */
export interface Against {
  readonly engine: string;
  readonly model: string;
  readonly repository: string;
}

export interface Measure {
  readonly repository: string;
  readonly name: string;
  /** Without an engine only files are scanned. */
  readonly engine?: string;
  /** Milliseconds per second of audio; the signed promise by default. */
  readonly sla?: number;
  /** Concurrent callers during the measurement of latency. */
  readonly parallel: number;
  readonly recordings?: string;
  readonly against?: Against | 'none';
  readonly language?: string;
  readonly tool: string;
  readonly log: (line: string) => void;
}

export interface Measured {
  readonly revision: string;
  readonly evidence: readonly Evidence[];
  /** Measurements that were left out, with reasons, and remarks on the others. */
  readonly notes: readonly string[];
}

export async function measureRevision(given: Measure): Promise<BuildResult<Measured>> {
  const read = await readRevision(given.repository, given.name);
  if (!read.ok) return read;
  const revision = read.value;
  const evidence: Evidence[] = [];
  const notes: string[] = [];
  const measured = () => ok({ revision: revision.model.description.revision, evidence, notes });
  evidence.push(await scanRevision(revision, given.tool));
  if (given.engine === undefined) {
    notes.push('load, latency and quality are measured at an engine: --engine URL');
    return measured();
  }
  const engine = createKserveEngine(given.engine, 2 * MEASURE_STREAMS);
  const target = { fetchPage: engineClient(given.engine), infer: engine.infer };
  const loaded = await checkLoad(revision, target, given.tool).finally(engine.close);
  evidence.push(loaded);
  if (loaded.verdict !== 'PASS') notes.push('latency and quality are measured where it is loaded');
  else if (!isSpeechModel(revision.model)) notes.push('latency and quality are measured of recognisers of speech');
  else if (given.recordings === undefined) notes.push('latency and quality want recordings: --recordings DIR');
  else {
    const list = await readRecordings(given.recordings);
    if (!list.ok) return list;
    const quality = await measureHearing(
      given,
      { engine: given.engine, revision, model: revision.model, list: list.value },
      notes,
    );
    if (!quality.ok) return quality;
    evidence.push(...quality.value);
  }
  return measured();
}

interface Subject {
  readonly engine: string;
  readonly revision: Revision;
  readonly model: SpeechModel;
  readonly list: RecordingList;
}

/** Measures latency and quality. Adds to `notes` why one of them is missing. */
async function measureHearing(
  given: Measure,
  { engine, revision, model, list }: Subject,
  notes: string[],
): Promise<BuildResult<Evidence[]>> {
  const recogniserOf = createRecognisers();
  const listener = await openListener(engine, model, recogniserOf);
  try {
    const evidence: Evidence[] = [];
    const sla = given.sla ?? (await readPromise(revision))?.latencyMs;
    if (sla === undefined) notes.push('latency: no promise is signed, so --sla MS says what it is held against');
    else {
      const latency = await timeRecordings(given, list, listener, sla);
      if (!latency.ok) return latency;
      evidence.push(latency.value);
    }
    if (given.against === undefined) notes.push('quality: --against URL says what it is held against, or none');
    else {
      const quality = await compareRecordings(given, {
        engine,
        against: given.against,
        model,
        list,
        listener,
        recogniserOf,
      });
      if (!quality.ok) return quality;
      evidence.push(...quality.value);
      if (model.live && quality.value.length === 1)
        notes.push('quality: of live streams it is measured where both revisions have a stream_model');
      if (given.against === 'none')
        notes.push(
          'quality: nothing was before it, so that its errors stand for both; only wordErrors that were promised can be missed',
        );
    }
    return ok(evidence);
  } finally {
    listener.close();
  }
}

async function timeRecordings(
  { tool, parallel, log }: Measure,
  { recordings }: RecordingList,
  { infer }: Listener,
  sla: number,
): Promise<BuildResult<Latency>> {
  const cuts: Cut[] = [];
  for (const { file } of spread(recordings, MEASURE_WINDOW_REQUESTS)) {
    const cut = await readCut(file);
    if (!cut.ok) return cut;
    // Silence is not sent to the engine.
    if (cut.value.utterances.length > 0) cuts.push(cut.value);
  }
  if (cuts.length === 0) return problem('unreadable', 'these recordings contain no speech');
  log(`latency: windows of ${MEASURE_WINDOW_REQUESTS} of ${cuts.length} recordings, ${parallel} at once`);
  const windows = await measureWindows({ recordings: cuts, infer, parallel, now: () => performance.now() });
  return windows.ok ? ok({ kind: 'latency', tool, sla, windows: windows.value }) : windows;
}

interface Compared {
  readonly engine: string;
  readonly against: Against | 'none';
  readonly model: SpeechModel;
  readonly list: RecordingList;
  readonly listener: Listener;
  readonly recogniserOf: ReturnType<typeof createRecognisers>;
}

async function compareRecordings(
  { tool, language: requested, log }: Measure,
  { engine, against, model, list, listener, recogniserOf }: Compared,
): Promise<BuildResult<Quality[]>> {
  const { languages } = model.description;
  const language = requested ?? languages[0];
  if (language === undefined || (requested === undefined && languages.length > 1))
    return problem('written', `--language: which of ${languages.join(', ')} do they speak?`);
  if (!languages.includes(language))
    return problem('written', `--language ${language}: it hears ${languages.join(', ')}`);
  const before = against === 'none' ? ok(undefined) : await openAgainst(against, recogniserOf);
  if (!before.ok) return before;
  log(`quality: ${list.recordings.length} recordings`);
  try {
    const named = `${tool}, against ${against === 'none' ? 'none' : against.model}`.slice(0, 128);
    const asked = { list, language, tool: named };
    const whole = await compare(asked, listener, before.value?.listener);
    if (!whole.ok) return whole;
    const live = openLive(engine, model, listener);
    const other = before.value && openLive(before.value.engine, before.value.model, before.value.listener);
    if (!live || (before.value && !other)) return ok([whole.value]);
    const streamed = await compare(asked, live, other).finally(() => {
      live.close();
      other?.close();
    });
    return streamed.ok ? ok([whole.value, { ...streamed.value, streamed: true }]) : streamed;
  } finally {
    before.value?.listener.close();
  }
}

function compare(
  asked: Parameters<typeof measureQuality>[0],
  after: Transcriber,
  before: Transcriber | undefined,
): Promise<BuildResult<Quality>> {
  const transcribers = before ? [after, before] : [after];
  return measureQuality(asked, async ({ file }) => {
    const transcripts = await transcribeAll(file, transcribers);
    if (!transcripts.ok) return transcripts;
    const [own = '', other = own] = transcripts.value;
    return ok({ after: own, before: other });
  });
}

/** Opens the streaming half of a model; `undefined` where it has none. */
function openLive(engine: string, { live }: SpeechModel, { recogniser }: Listener): Transcriber | undefined {
  return live && 'decoder' in recogniser
    ? openLiveTranscriber(createKserveEngine(engine, MEASURE_CONCURRENT_MAX), live, recogniser)
    : undefined;
}

interface Before {
  readonly engine: string;
  readonly model: SpeechModel;
  readonly listener: Listener;
}

async function openAgainst(
  { engine, model: name, repository }: Against,
  recogniserOf: Compared['recogniserOf'],
): Promise<BuildResult<Before>> {
  const read = await readRevision(repository, name);
  if (!read.ok) return read;
  const { model } = read.value;
  if (!isSpeechModel(model)) return problem('unsupported', `${name} recognises no speech`);
  if (!(await engineClient(engine)(`/v2/models/${encodeURIComponent(name)}/ready`)))
    return problem('engine', `${name} is not ready at the engine that it is held against`);
  return ok({ engine, model, listener: await openListener(engine, model, recogniserOf) });
}

/** Reads the promise in the author's signature. Judges know it, too, and use the lower bound. */
async function readPromise({ repository, model: { description } }: Revision): Promise<Sla | undefined> {
  for (const ending of ['.sig', '.sm2.sig']) {
    const text = await readFile(path.join(repository, `${description.name}${ending}`), 'utf8').catch(() => undefined);
    const signed = text === undefined ? undefined : bundle.safeParse(jsonOf(text)).data;
    const payload = signed && fromBase64(signed.dsseEnvelope.payload);
    const manifest = payload && readManifest(readPayload(payload));
    if (manifest?.revision === description.revision && manifest.sla) return manifest.sla;
  }
  return undefined;
}
