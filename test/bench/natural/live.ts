import { readFile } from 'node:fs/promises';
import { setTimeout } from 'node:timers/promises';
import { Registry } from 'prom-client';
import type { Engine } from '../../../infra/pool/agent/engine/engine.ts';
import type { ServedModel } from '../../../infra/pool/agent/models/served-model.ts';
import { systemClock } from '../../../infra/pool/agent/stream/clock.ts';
import { createLiveParts } from '../../../infra/pool/agent/stream/parts.ts';
import { openSession } from '../../../infra/pool/agent/stream/session.ts';
import type { LinkEvent } from '../../../shared/stream/link.ts';
import { matchedWords } from './matched-words.ts';
import { type Prompt, wordsOf } from './prompts.ts';

/** Bytes and milliseconds of a frame: 100 ms of 8 kHz in 16 bits. */
const FRAME = { bytes: 1_600, ms: 100 } as const;

type Worded = Extract<LinkEvent, { type: 'interim' | 'segment' }>;

/** Sends prompts in real time, one after another; delays in ms from the end of each word to its final spelling. */
export async function measureLive(engine: Engine, model: ServedModel, prompts: readonly Prompt[]): Promise<number[]> {
  const registry = new Registry();
  const live = createLiveParts({ engine, clock: systemClock, slots: 4, capacity: 16, registry, open: () => 0 });
  const delays: number[] = [];
  for (const { file } of prompts) {
    const events: { at: number; event: Worded }[] = [];
    const cancel = new AbortController();
    const opened = await openSession(
      {
        live,
        agent: 'bench',
        ticket: { class: 'realtime', model: model.description.name },
        model,
        link: {
          send(event) {
            if (event.type === 'interim' || event.type === 'segment') events.push({ at: performance.now(), event });
          },
          congested: () => false,
          flowing: async () => {},
        },
        signal: cancel.signal,
        onRefusal: ({ reason, detail }) => cancel.abort(new Error(`${reason} ${detail}`)),
        onUtterance: () => {},
      },
      {
        ...{ type: 'open', v: 1, task: 'stream', model: model.description.name },
        format: { encoding: 'linear16', rate: 8_000, channels: 1 },
        options: { interim: true, endpointingMs: 600 },
      },
    );
    if (!opened.ok) throw new Error(opened.refusal.reason);
    const audio = (await readFile(file)).subarray(44);
    const begun = performance.now();
    for (let at = 0, next = begun; at < audio.length; at += FRAME.bytes) {
      next += FRAME.ms;
      await setTimeout(Math.max(0, next - performance.now()));
      await opened.value.take({ kind: 'audio', position: at, audio: audio.subarray(at, at + FRAME.bytes) });
    }
    await opened.value.end();
    opened.value.free();
    cancel.signal.throwIfAborted();
    delays.push(...delaysOf(events, begun));
  }
  return delays.sort((one, other) => one - other);
}

/** Delays of the words of each segment, ms: of the first event that has the word, wherever other words stand then. */
export function delaysOf(events: readonly { at: number; event: Worded }[], begun: number): number[] {
  const plain = ({ words }: Worded) => words.map(({ word }) => wordsOf(word).join(' '));
  return events.flatMap(({ event: segment }) => {
    if (segment.type !== 'segment') return [];
    const shown = new Map<number, number>();
    for (const { at, event } of events.filter(({ event: one }) => one.index === segment.index))
      for (const i of matchedWords(plain(segment), plain(event))) if (!shown.has(i)) shown.set(i, at);
    return segment.words.flatMap(({ end }, i) => {
      const at = shown.get(i);
      return at === undefined ? [] : [at - begun - 1_000 * end];
    });
  });
}
