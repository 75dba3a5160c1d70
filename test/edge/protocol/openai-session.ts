// One OpenAI session, written down: what the client sends, what the protocol does, what the client is told.

import type { ClientCommand, LiveProtocol, SessionEvent } from '../../../edge/protocol/live-protocol.ts';
import { openaiRealtime } from '../../../edge/protocol/openai-realtime.ts';

export const NOW = 1_760_000_000_000;
export const session = { id: 'c0ffee00-1234', request: 'req-1', now: NOW, expires: NOW + 3_600_000 };

export function make(query = '', headers: Record<string, string> = {}): LiveProtocol {
  const made = openaiRealtime(new URL(`https://edge.test/v1/realtime${query}`), new Headers(headers));
  if (!made.ok) throw new Error(JSON.stringify(made.refusal));
  return made.value;
}

export type Frame = { type: string; [name: string]: unknown };
export const parse = (frames: readonly (string | Uint8Array)[]): Frame[] =>
  frames.map((frame) => JSON.parse(String(frame)));

/** A session in which everything is written down. */
export function talk(query = '?intent=transcription&model=reference-en', headers: Record<string, string> = {}) {
  const protocol = make(query, headers);
  const frames = parse(protocol.open(session));
  const steps: ClientCommand[] = [];
  return {
    protocol,
    frames,
    steps,
    send(event: unknown): Frame[] {
      const said = protocol.receive(
        typeof event === 'string' || event instanceof Uint8Array ? event : JSON.stringify(event),
        NOW,
      );
      steps.push(...said);
      const replies = said.flatMap((step) => {
        if (step.type === 'route') return parse(step.accepted);
        return step.type === 'reply' ? parse(step.frames) : [];
      });
      frames.push(...replies);
      return replies;
    },
    tell(...events: SessionEvent[]): Frame[] {
      const told = events.flatMap((event) => parse(protocol.render(event, NOW)));
      frames.push(...told);
      return told;
    },
    kinds: () => steps.filter((step) => step.type !== 'reply').map((step) => step.type),
  };
}

export const sound = (milliseconds: number, rate = 24_000) =>
  Buffer.alloc((milliseconds * rate * 2) / 1_000).toString('base64');
export const append = (milliseconds = 100) => ({ type: 'input_audio_buffer.append', audio: sound(milliseconds) });
export const words = (text: string, start = 0) =>
  text
    .split(' ')
    .filter(Boolean)
    .map((word, index) => ({ word, start: start + index * 0.3, end: start + index * 0.3 + 0.2, confidence: 0.9 }));
export const interim = (text: string, stable: number, start = 0): SessionEvent => ({
  type: 'interim',
  index: 0,
  start,
  end: start + 1,
  text,
  words: words(text, start),
  stable,
  confidence: 0.9,
});
export const segment = (
  text: string,
  start = 0,
  ending: 'endpoint' | 'finalize' | 'length' = 'endpoint',
): SessionEvent => ({
  type: 'segment',
  index: 0,
  start,
  end: start + 1,
  text,
  words: words(text, start),
  confidence: 0.9,
  logProbability: -0.1,
  ending,
});
export const PREFIX = 'conversation.item.input_audio_transcription';
export const types = (frames: readonly Frame[]) => frames.map(({ type }) => type);
export const deltas = (frames: readonly Frame[]) =>
  frames.filter(({ type }) => type === `${PREFIX}.delta`).map(({ delta }) => delta);
