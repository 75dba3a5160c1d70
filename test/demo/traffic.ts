// Live traffic: phones that say something into the edge and read what it understood, until they are told to stop.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { importJWK, type JWK, SignJWT } from 'jose';
import { z } from 'zod';
import { AUDIENCE, ISSUER } from '../../infra/local/identity/tokens.ts';
import { ROOT } from '../../infra/local/root.ts';

export const CLIPS = path.join(ROOT, 'test/clips');
/** Phones say a few words, not whole sentences: what becomes of a stream is counted by streams. */
const SECONDS = 1.4;
const RATE = 16_000;
const HEADER = 44;

/** The beginning of a WAV file of 16-bit samples with the plain header. */
function beginningOf(file: string): Blob {
  const bytes = readFileSync(file);
  const length = Math.min(bytes.length, HEADER + 2 * RATE * SECONDS);
  const cut = Buffer.from(bytes.subarray(0, length));
  cut.writeUInt32LE(length - 8, 4);
  cut.writeUInt32LE(length - HEADER, HEADER - 4);
  return new Blob([cut]);
}

const RATES_OF_OTHERS = ['telephone.wav', 'studio.wav'];
const spoken = (JSON.parse(readFileSync(path.join(CLIPS, 'clips.json'), 'utf8')) as { file: string; text: string }[])
  .filter(({ file }) => file.endsWith('.wav') && !RATES_OF_OTHERS.includes(file))
  .map(({ file }) => beginningOf(path.join(CLIPS, file)));

/** Default pause between two requests of a phone, ms. */
export const PAUSE_MS = 2_500;

/** Timeout of a request, longer than the edge takes to refuse. */
const ANSWER_MS = 60_000;

export interface Seen {
  readonly requests: number;
  readonly failed: number;
  /** Distinct answers that were no transcript. */
  readonly problems: readonly string[];
}

export interface Traffic {
  /** Sets the pause of each phone between two requests. */
  pace(pauseMs: number): void;
  /** One request more, in Deepgram's words, whose answers say which revision they are of: a UUID of it. */
  askWho(): Promise<string>;
  stop(): Promise<Seen>;
}

/** Members read from a transcription answer. */
const recording = z.object({
  metadata: z.object({ models: z.tuple([z.string()]) }),
  results: z.object({
    channels: z.tuple([z.object({ alternatives: z.tuple([z.object({ transcript: z.string().min(1) })]) })]),
  }),
});

/** Signs a token without a subject: every request is a session of its own, with a random cohort. */
async function phoneToken(key: JWK): Promise<string> {
  const now = Math.floor(Date.now() / 1_000);
  const claims = {
    ...{ tenant: 'demo', scope: 'transcribe', languages: ['*'], zones: ['eu'], priority: 'realtime', sealing: 'edge' },
    ...{ audit: 'buffered', sessionSeconds: 600 },
    allowance: { requestsPerMinute: 100_000, requestsAtOnce: 100, audioSecondsPerDay: 1_000_000 },
  };
  return new SignJWT(claims)
    .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid: key.kid as string })
    .setIssuer(ISSUER)
    .setAudience(AUDIENCE)
    .setJti(crypto.randomUUID())
    .setIssuedAt(now)
    .setExpirationTime(now + 3_600)
    .sign(await importJWK(key, 'ES256'));
}

/** `phones` of them, each with one request after the other. */
export async function startTraffic(
  url: string,
  key: JWK,
  { model, phones }: { model: string; phones: number },
): Promise<Traffic> {
  const token = await phoneToken(key);
  const authorization = `Bearer ${token}`;
  const stopping = new AbortController();
  const problems = new Set<string>();
  let [requests, failed, pauseMs] = [0, 0, PAUSE_MS];
  const ask = async (clip: Blob) => {
    const form = new FormData();
    form.append('model', model);
    form.append('file', clip, 'said.wav');
    const response = await fetch(`${url}/v1/audio/transcriptions`, {
      method: 'POST',
      headers: { authorization },
      body: form,
      signal: AbortSignal.timeout(ANSWER_MS),
    });
    const said = (await response.json()) as { text?: string };
    if (!response.ok || !said.text) throw new Error(`${response.status} ${JSON.stringify(said).slice(0, 200)}`);
  };
  const askWho = async () => {
    requests += 1;
    const response = await fetch(`${url}/v1/listen?model=${model}`, {
      method: 'POST',
      headers: { authorization: `Token ${token}`, 'content-type': 'audio/wav' },
      body: spoken[0] as Blob,
      signal: AbortSignal.timeout(ANSWER_MS),
    });
    const said = recording.safeParse(await response.json());
    if (!said.success) throw new Error(`${response.status} instead of words`);
    return said.data.metadata.models[0];
  };
  const phone = async (own: number) => {
    for (let at = own; !stopping.signal.aborted; at += 1) {
      requests += 1;
      await ask(spoken[at % spoken.length] as Blob).catch((error: unknown) => {
        failed += 1;
        problems.add(error instanceof Error ? error.message : String(error));
      });
      if (pauseMs > 0) await pause(pauseMs);
    }
  };
  const all = Promise.all(Array.from({ length: phones }, (_, own) => phone(own)));
  return {
    askWho,
    pace: (ms) => {
      pauseMs = ms;
    },
    async stop() {
      stopping.abort();
      await all;
      return { requests, failed, problems: [...problems] };
    },
  };
}
