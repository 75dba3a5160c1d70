// Names of the local stack, so that official clients work with the models that they name by default.
import { z } from 'zod';

/** Names of the recognition model that official clients request. */
const HEARING = [
  'default',
  'whisper-1',
  'gpt-4o-transcribe',
  'gpt-4o-mini-transcribe',
  'gpt-transcribe',
  'gpt-realtime',
  'gpt-realtime-whisper',
  'gpt-live-transcribe',
  'nova-3',
  'nova-3-general',
  'nova-2',
  'nova-2-general',
];
/** Names of the voice. */
const SPEAKING = ['tts-1', 'tts-1-hd', 'gpt-4o-mini-tts', 'aura-2-thalia-en', 'aura-asteria-en'];
/** Longest call, ms: the functions share two cores with every other part. */
const CALL_MS = 10_000;

const named = z.object({ data: z.array(z.object({ name: z.string(), tenant: z.string().optional() })) });
const served = z.object({ data: z.array(z.object({ id: z.string(), task: z.string() })) });

/** Gives each name that has no model yet to a served one: the reference model before others. Throws on a refusal. */
export async function setNames(url: string, token: string): Promise<void> {
  const call = async (path: string, body?: object): Promise<unknown> => {
    const response = await fetch(`${url}${path}`, {
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body && { method: 'POST', body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(CALL_MS),
    });
    if (!response.ok) throw new Error(`${path} answers ${response.status} ${await response.text()}`);
    return response.json();
  };
  const known = named.parse(await call('/v1/names')).data.filter(({ tenant }) => tenant === undefined);
  const models = served.parse(await call('/v1/models')).data;
  const missing = missingNames(
    known.map(({ name }) => name),
    models,
  );
  // Each call publishes a release map.
  for (const [model, moves] of Map.groupBy(missing, (one) => one.model)) {
    const [name, ...others] = moves.map((move) => move.name);
    await call('/v1/names', { name, others, model, reason: 'name of an official client' });
  }
}

/** Returns the names without a model, and the models for them. */
export function missingNames(
  known: readonly string[],
  models: readonly { readonly id: string; readonly task: string }[],
): { readonly name: string; readonly model: string }[] {
  const first = (task: string, preferred: string) => {
    const fit = models.filter((one) => one.task === task);
    return fit.find(({ id }) => id === preferred)?.id ?? fit[0]?.id;
  };
  const give = (names: readonly string[], model: string | undefined) =>
    model === undefined ? [] : names.map((name) => ({ name, model }));
  return [
    ...give(HEARING, first('transcribe', 'reference-en')),
    ...give(SPEAKING, first('synthesize', 'voice-en')),
  ].filter(({ name }) => !known.includes(name));
}
