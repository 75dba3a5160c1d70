import { readFileSync } from 'node:fs';
import { readBytes, readFp32 } from '../../../../../shared/kserve/tensor.ts';
import { refuse } from '../../../../../shared/refusal.ts';
import { no, ok } from '../../../../../shared/result.ts';
import type { SpeechServerSettings } from '../../settings/speech-server.ts';
import type { Engine, EngineTensor, Inference, InferOutcome, ModelState } from '../engine.ts';
import { createEngineClient, type EngineResponse } from '../http.ts';
import { answerForms, encodeForm } from './form.ts';
import { createListing } from './list-models.ts';
import { serverRefusal } from './server-refusal.ts';
import { readTranscript } from './transcript.ts';

/** Statuses with which a server refuses a form of answer that it does not know. */
const UNKNOWN_FORM = new Set([400, 415, 422, 501]);
/** Statuses of a server that is restarting, full or gone: it has not understood the request. */
const RETRYABLE = new Set([408, 429, 500, 502, 503, 504]);

/** Tensors of each of its models, as of any model whose answer is text. */
export const speechServerTensors = {
  inputs: ['AUDIO', 'PROMPT'],
  outputs: ['TEXT', 'WORD_TIMES', 'WORD_CONFIDENCE'],
} as const;

const failed = (detail: string) => no(refuse('engine_failed', undefined, detail));
const anyShape = (names: readonly string[]): EngineTensor[] => names.map((name) => ({ name, shape: [-1, -1] }));

/** Connection to a server, with the key of the file at that moment. Rejects when there is no whole response. */
function openConnection({ url, keyFile }: SpeechServerSettings, connections: number) {
  const { request, close } = createEngineClient(url, connections);
  const authorization = (): Record<string, string> =>
    keyFile === undefined ? {} : { authorization: `Bearer ${readFileSync(keyFile, 'utf8').trim()}` };
  let answered = Number.NEGATIVE_INFINITY;
  return {
    async request(sent: Parameters<typeof request>[0]): Promise<EngineResponse> {
      const response = await request({ ...sent, headers: authorization() });
      answered = Date.now();
      return response;
    },
    answeredAt: () => answered,
    close,
  };
}

type Request = ReturnType<typeof openConnection>['request'];

/** Transcribes with the richest form of answer that the server knows for a model. Never rejects. */
function createTranscribe(request: Request, { languages: [first, ...others] }: SpeechServerSettings) {
  const only = others.length === 0 ? first?.split('-')[0]?.toLowerCase() : undefined;
  const language = only === 'und' ? undefined : only;
  /** Index of the form that worked, by model. */
  const known = new Map<string, number>();

  async function send({ model, inputs, signal }: Inference, form: number): Promise<EngineResponse | InferOutcome> {
    const [audio, prompted] = inputs;
    const samples = audio && readFp32(audio);
    const prompt = prompted && readBytes(prompted);
    if (!samples?.ok) return { ok: false, retryable: false, detail: 'engine request: no AUDIO' };
    const answer = answerForms[form] as (typeof answerForms)[number];
    const body = await encodeForm({
      ...{ model, samples: samples.value, language, answer },
      prompt: prompt?.ok ? new TextDecoder().decode(prompt.value[0]) : '',
    });
    try {
      return await request({ method: 'POST', path: '/audio/transcriptions', body, signal });
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? 'no answer';
      return { ok: false, retryable: !signal.aborted, detail: `engine ${code}` };
    }
  }

  return async (inference: Inference): Promise<InferOutcome> => {
    const { model } = inference;
    for (let form = known.get(model) ?? 0; ; form++) {
      const response = await send(inference, form);
      if ('ok' in response) return response;
      const { status, body } = response;
      const mayStepDown = !known.has(model) && form + 1 < answerForms.length;
      const tensors = status === 200 ? readTranscript(body) : undefined;
      if (mayStepDown && !tensors && (status === 200 || UNKNOWN_FORM.has(status))) continue;
      if (status === 200 && !tensors)
        return { ok: false, retryable: false, detail: 'engine answer: no transcript', status };
      if (tensors) {
        known.set(model, form);
        return { ok: true, value: new Map(tensors.map((tensor) => [tensor.name, tensor])) };
      }
      const refusal = serverRefusal(response);
      const failure = {
        ok: false,
        retryable: RETRYABLE.has(status),
        detail: `engine status ${status}`,
        status,
      } as const;
      return refusal ? { ...failure, refusal } : failure;
    }
  };
}

/**
 * Creates an engine whose models are those of an OpenAI-compatible speech server (`/v1/models`,
 * `/v1/audio/transcriptions`). It takes the sound of one utterance and gives text. The server loads and unloads its
 * models itself.
 */
export function createSpeechServer(settings: SpeechServerSettings, connections: number): Engine {
  const { request, answeredAt, close } = openConnection(settings, connections);
  const named = settings.models.map(({ id }) => id);
  const listing = createListing({ request, named, now: Date.now, answeredAt });
  let loaded: readonly string[] = [];
  const unmanaged = async () => failed('the speech server loads its models itself');
  return {
    async ready(_, onFailure) {
      const listed = await listing();
      if (listed.ok) loaded = listed.value;
      else onFailure?.(listed.refusal.detail ?? '');
      return listed.ok;
    },
    modelReady: async (model) => loaded.includes(model),
    metadata: async () =>
      ok({ inputs: anyShape(speechServerTensors.inputs), outputs: anyShape(speechServerTensors.outputs) }),
    queues: async () => ok([]),
    infer: createTranscribe(request, settings),
    statistics: async () => failed('a speech server counts nothing'),
    async loaded() {
      const listed = await listing();
      return listed.ok ? ok(new Map(listed.value.map((id): [string, ModelState] => [id, { is: 'ready' }]))) : listed;
    },
    load: unmanaged,
    unload: unmanaged,
    memory: async () => undefined,
    retriesLoads: async () => true,
    close,
  };
}
