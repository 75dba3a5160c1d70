import { createHash } from 'node:crypto';
import { readSegment } from '../../../../../shared/jobs/document.ts';
import { inEdition } from '../../../../../shared/jobs/paths.ts';
import { PROJECT_SEGMENT_CHARACTERS } from '../../../../../shared/jobs/split-text.ts';
import { refuse } from '../../../../../shared/refusal.ts';
import { littleEndian } from '../../audio/little-endian.ts';
import { readWhole } from '../../storage/files.ts';
import { encodeLine } from '../task/lines.ts';
import { failed, readOutcomeFile, type Task, type Verdict, writeOutcomeFile } from '../task/task.ts';
import { chooseSpeaker } from './choose-speaker.ts';
import type { SpokenLine } from './sheets.ts';

/** Sound of one segment at half the speed; more of it is a voice that does not stop. */
const PROJECT_SEGMENT_S = 120;

/** Room for characters of four bytes. */
const SEGMENT_BYTES = 4 * PROJECT_SEGMENT_CHARACTERS;

/** Speaks one segment. What has nothing in it to say is silence: three dots are no reason to have no chapter. */
export async function speakSegment(task: Task): Promise<Verdict> {
  const { piece = 0, edition = 0 } = task.job;
  const chosen = chooseSpeaker(task);
  if (!chosen.ok) return failed(chosen.refusal);
  const { speaker, model } = chosen.value;
  const file = readOutcomeFile(task, inEdition(`pieces/${piece}` as const, edition));
  if (!file.ok) return failed(file.refusal);
  const bytes = await readWhole(file.value, SEGMENT_BYTES);
  if (!bytes.ok) return failed(bytes.refusal);
  // A changed text comes sealed by its author, so it is checked here as the plan checks the rest.
  const text = readSegment(new TextDecoder().decode(bytes.value));
  const { voice, rate = 1 } = task.opened.upload.speech ?? {};
  const { dispatcher } = task.shop;
  // Batch work has the last class, whatever the priority of its project.
  const place = { class: 'batch', tenant: task.opened.upload.tenant, deadline: task.deadline } as const;
  const requested = { ...(voice !== undefined && { voice }), rate, place, run: dispatcher.run };
  const spoken = text.ok ? await speaker.speak(text.value, requested, task.signal) : text;
  const empty = !spoken.ok && SILENT.has(spoken.refusal.reason);
  if (!spoken.ok && REQUEST_REASONS.has(spoken.refusal.reason)) return { type: 'refused', refusal: spoken.refusal };
  if (!spoken.ok && !empty) return failed(spoken.refusal);
  const samples = spoken.ok ? spoken.value : new Int16Array(0);
  if (samples.length > PROJECT_SEGMENT_S * speaker.sampleRate)
    return failed(refuse('engine_failed', undefined, 'a voice that does not stop'));
  const pcm = littleEndian(samples);
  const line: SpokenLine = {
    v: 1,
    text: text.ok ? text.value : '',
    model: speaker.model,
    revision: model.description.revision,
    ...(voice !== undefined && { voice }),
    rate,
    sampleRate: speaker.sampleRate,
    samples: samples.length,
    digest: `sha256:${createHash('sha256').update(pcm).digest('hex')}`,
    spoken: !empty,
  };
  const seconds = samples.length / speaker.sampleRate;
  const name = inEdition(`results/${piece}` as const, edition);
  const written = await writeOutcomeFile(task, name, [encodeLine(line), pcm], { seconds });
  return written.ok ? { type: 'done', seconds } : failed(written.refusal);
}

/** Nothing to say, or nothing that may be said: the manifest shows it. */
const SILENT: ReadonlySet<string> = new Set(['text_unspeakable', 'text_empty', 'text_invalid', 'text_too_long']);

/** Reasons that lie in the options, whatever the text. */
const REQUEST_REASONS: ReadonlySet<string> = new Set(['voice_unknown', 'field_invalid']);
