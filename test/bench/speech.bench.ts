// Time to the first sound of a text, beside the time of its whole synthesis: `npm run bench -- speech`.
import type { AgentRequest } from '../../infra/pool/agent/request/admitted-request.ts';
import { speak } from '../../infra/pool/agent/server/speak.ts';
import { ok } from '../../shared/result.ts';
import type { SpeechFormat } from '../../shared/speech/speak.ts';
import { median } from './median.ts';
import type { Bench } from './run.ts';
import { openVoice } from './voice.bench.ts';

const RUNS = 9;
const sentences = [
  'Good morning, and thank you for calling the clinic.',
  'Your appointment with the doctor is on Thursday at half past nine.',
  'Please bring your insurance card and a list of your medicines.',
  'If you cannot come, call us one day before.',
];
/** Numbers of sentences: a reply of an assistant, and half a minute and two minutes of speech. */
const lengths = [2, 8, 32];
const formats: Readonly<Record<string, SpeechFormat>> = {
  wav: { encoding: 'linear16', container: 'wav', sampleRate: 16_000 },
  opus: { encoding: 'opus', container: 'ogg', sampleRate: 48_000 },
};

type Voice = Awaited<ReturnType<typeof openVoice>>;

/** Returns milliseconds to the first and to the last sound of a text, and its seconds. */
async function measureOne({ speaker }: Voice, text: string, format: SpeechFormat) {
  const began = performance.now();
  let first = 0;
  let seconds = 0;
  async function* records() {
    yield ok({ plaintext: new TextEncoder().encode(text), final: true });
  }
  const work = {
    head: { v: 1, task: 'speak', model: speaker.model, ...format },
    ticket: { model: speaker.model, class: 'realtime', tenant: 'bench' },
    model: { description: { name: speaker.model, revision: '', languages: ['en'] }, speaker },
    answer: {
      send: async (event: { durationSeconds?: number }) => {
        seconds = event.durationSeconds ?? 0;
      },
      sendBody: async () => {
        first ||= performance.now() - began;
      },
    },
    ...{ records: records(), signal: new AbortController().signal, deadline: Date.now() + 60_000 },
  };
  const spoken = await speak(work as unknown as AgentRequest);
  if (!spoken.ok) throw new Error(spoken.refusal.reason);
  return { first, whole: performance.now() - began, seconds };
}

export async function measure(): Promise<Bench> {
  const voice = await openVoice();
  const table: Record<string, string | number>[] = [];
  const figures: Record<string, number> = {};
  for (const [name, format] of Object.entries(formats)) {
    for (const count of lengths) {
      const text = Array.from({ length: count }, (_, at) => sentences[at % sentences.length]).join(' ');
      await measureOne(voice, text, format);
      const runs = [];
      for (let run = 0; run < RUNS; run += 1) runs.push(await measureOne(voice, text, format));
      const first = median(runs.map((one) => one.first));
      const whole = median(runs.map((one) => one.whole));
      const ratio = median(runs.map((one) => one.first / one.whole));
      figures[`speech_first_ms_${name}_${count}`] = Math.round(first);
      figures[`speech_first_ratio_${name}_${count}`] = Math.round(1_000 * ratio) / 1_000;
      const seconds = Math.round(runs[0]?.seconds ?? 0);
      table.push({
        format: name,
        sentences: count,
        seconds,
        'first sound, ms': Math.round(first),
        'whole, ms': Math.round(whole),
      });
    }
  }
  const how =
    `Texts of ${lengths.join(', ')} sentences through the task speak of the agent, network on one thread in this process, ` +
    `median of ${RUNS} runs. The peer is the end of the same run: a server that answers with the whole sound.`;
  return { table, figures, how };
}
