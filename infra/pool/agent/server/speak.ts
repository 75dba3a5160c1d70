import { refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import { isMarkup, SPEECH_TEXT_CHARACTERS, speakHead } from '../../../../shared/speech/speak.ts';
import type { ServedModel } from '../models/served-model.ts';
import type { AgentRequest } from '../request/admitted-request.ts';
import { sendPieces } from '../request/respond.ts';
import { openSpeechEncoder, type SpeechEncoder } from '../tts/encode-speech.ts';
import type { Speaker } from '../tts/speaker.ts';
import { planText, type Step } from '../tts/speech-plan.ts';
import { readSsml } from '../tts/ssml.ts';

/** Text of characters of four bytes. */
const TEXT_BYTES = 4 * SPEECH_TEXT_CHARACTERS;

/** Synthesises a text sentence by sentence, sending each while the next is made. Emits everything but a refusal. */
export async function speak(work: AgentRequest): Promise<Result<undefined>> {
  const { model, ticket, answer } = work;
  const read = speakHead.safeParse(work.head);
  if (!read.success) return no(refuse('seal_broken', undefined, 'head is not understood'));
  const head = read.data;
  if (head.model !== ticket.model) return no(refuse('ticket_invalid', undefined, 'model of the head'));
  const { speaker } = model;
  if (!speaker) return no(refuse('misdirected', undefined, 'the model is no voice'));
  const text = await readText(work.records);
  if (!text.ok) return text;
  const steps = planSteps(text.value, head.rate ?? 1, model);
  if (!steps.ok) return steps;
  const encoder = openSpeechEncoder(head);
  try {
    const spoken = await sendSpeech(work, { speaker, voice: head.voice, steps: steps.value, encoder });
    if (!spoken.ok) {
      // The client does not read, so a refusal would not arrive.
      if (spoken.refusal.reason === 'reader_slow') answer.cut();
      return spoken;
    }
    const { name, revision } = model.description;
    await answer.send({ type: 'final', model: name, revision, durationSeconds: spoken.value });
    return ok(undefined);
  } finally {
    encoder.close();
  }
}

async function readText(records: AgentRequest['records']): Promise<Result<string>> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const record of records) {
    if (!record.ok) return record;
    bytes += record.value.plaintext.length;
    if (bytes > TEXT_BYTES) return no(refuse('text_too_long', { limit: SPEECH_TEXT_CHARACTERS, unit: 'characters' }));
    pieces.push(record.value.plaintext);
  }
  return ok(Buffer.concat(pieces).toString('utf8'));
}

function planSteps(text: string, rate: number, { description }: ServedModel): Result<readonly Step[]> {
  if (!isMarkup(text)) return planText(text, rate);
  const { name, languages, ssml = [] } = description;
  return readSsml(text, rate, { model: name, languages, ssml });
}

interface Speech {
  readonly speaker: Speaker;
  readonly voice: string | undefined;
  readonly steps: readonly Step[];
  readonly encoder: SpeechEncoder;
}

/** Returns the seconds that were sent. */
async function sendSpeech(work: AgentRequest, speech: Speech): Promise<Result<number>> {
  const { answer } = work;
  const { encoder, speaker } = speech;
  let samples = 0;
  for await (const sound of sounds(work, speech)) {
    if (!sound.ok) return sound;
    if (samples === 0) await answer.send({ type: 'answer', headers: { 'content-type': encoder.contentType } });
    samples += sound.value.length;
    const sent = await sendPieces(answer, encoder.push(sound.value));
    if (!sent.ok) return sent;
  }
  const sent = await sendPieces(answer, encoder.finish());
  return sent.ok ? ok(samples / speaker.sampleRate) : sent;
}

/** Yields the sound of each step; makes one step ahead of the one that is being sent. */
async function* sounds(work: AgentRequest, { speaker, voice, steps }: Speech): AsyncGenerator<Result<Int16Array>> {
  const { signal, deadline, ticket, span, onStart } = work;
  const place = { class: ticket.class, tenant: ticket.tenant, deadline, span, onStart };
  const make = async ({ silenceMs, text, rate, pitch }: Step): Promise<Result<Int16Array>> => {
    const silence = Math.round((silenceMs * speaker.sampleRate) / 1_000);
    if (text === '') return ok(new Int16Array(silence));
    const spoken = await speaker.speak(text, { voice, rate, pitch, place }, signal);
    if (!spoken.ok) return spoken;
    const sound = new Int16Array(silence + spoken.value.length);
    sound.set(spoken.value, silence);
    return ok(sound);
  };
  let ahead: Promise<Result<Int16Array>> | undefined;
  for (const [at, step] of steps.entries()) {
    const sound = await (ahead ?? make(step));
    const next = steps[at + 1];
    ahead = sound.ok && next ? make(next) : undefined;
    // A failure counts when its turn comes, or not at all when the request has ended.
    ahead?.catch(() => {});
    yield sound;
    if (!sound.ok) return;
  }
}
