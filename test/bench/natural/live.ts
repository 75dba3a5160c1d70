import { readFile } from 'node:fs/promises';
import { Registry } from 'prom-client';
import type { Engine, Inference } from '../../../infra/pool/agent/engine/engine.ts';
import type { ServedModel } from '../../../infra/pool/agent/models/served-model.ts';
import { createLiveParts, type LiveParts } from '../../../infra/pool/agent/stream/parts.ts';
import { openSession, type Session } from '../../../infra/pool/agent/stream/session.ts';
import type { LinkEvent } from '../../../shared/stream/link.ts';
import { createFakeClock } from '../../fake/clock.ts';
import { matchedWords } from './matched-words.ts';
import { type Prompt, wordsOf } from './prompts.ts';

/** Bytes and milliseconds of a frame: 100 ms of 8 kHz in 16 bits. */
const FRAME = { bytes: 1_600, ms: 100 } as const;

type Worded = Extract<LinkEvent, { type: 'interim' | 'segment' }>;

/** Step of the virtual time, ms: the kernel counts processor time in such ticks. */
const STEP_MS = 10;

/**
 * Time that stands still while the engine computes, and then passes by the processor time that it took: what else the
 * machine does counts for nothing.
 */
function createVirtualTime(engine: Engine, cpuMs: () => number) {
  const fake = createFakeClock(0);
  let computing: Promise<unknown> | undefined;
  return {
    clock: fake.clock,
    engine: {
      ...engine,
      async infer(inference: Inference) {
        const before = cpuMs();
        const work = engine.infer(inference);
        computing = work;
        const outcome = await work;
        computing = undefined;
        await new Promise<void>((resolve) => fake.clock.after(cpuMs() - before, resolve));
        return outcome;
      },
    } satisfies Engine,
    /** Lets time pass to `until`, and until the work has ended. */
    async pass(work: Promise<unknown>, until: number) {
      let isDone = false;
      void work.finally(() => {
        isDone = true;
      });
      while (!isDone || fake.now() < until) {
        await fake.advance(STEP_MS);
        await computing;
      }
      await work;
    },
  };
}

/**
 * Streams prompts one after another, in virtual time; delays in ms from the end of each word to its final spelling.
 * `cpuMs`: processor time of the engine.
 */
export async function measureLive(
  engine: Engine,
  model: ServedModel,
  prompts: readonly Prompt[],
  cpuMs: () => number,
): Promise<number[]> {
  const time = createVirtualTime(engine, cpuMs);
  const { clock } = time;
  const registry = new Registry();
  const live = createLiveParts({ engine: time.engine, clock, slots: 4, capacity: 16, registry, open: () => 0 });
  const delays: number[] = [];
  for (const { file } of prompts) {
    const events: { at: number; event: Worded }[] = [];
    const session = await openWith(live, model, (event) => events.push({ at: clock.now(), event }));
    const audio = (await readFile(file)).subarray(44);
    const begun = clock.now();
    for (let at = 0, until = begun; at < audio.length; at += FRAME.bytes) {
      until += FRAME.ms;
      await time.pass(Promise.resolve(), until);
      const frame = audio.subarray(at, at + FRAME.bytes);
      await time.pass(Promise.resolve(session.take({ kind: 'audio', position: at, audio: frame })), 0);
    }
    await time.pass(session.end(), 0);
    session.free();
    delays.push(...delaysOf(events, begun));
  }
  return delays.sort((one, other) => one - other);
}

async function openWith(live: LiveParts, model: ServedModel, onWords: (event: Worded) => void): Promise<Session> {
  const { name } = model.description;
  const opened = await openSession(
    {
      ...{ live, agent: 'bench', model, signal: new AbortController().signal, onUtterance: () => {} },
      ticket: { class: 'realtime', model: name },
      link: {
        send(event) {
          if (event.type === 'interim' || event.type === 'segment') onWords(event);
        },
        congested: () => false,
        flowing: async () => {},
      },
      onRefusal({ reason, detail }) {
        throw new Error(`${reason} ${detail}`);
      },
    },
    {
      ...{ type: 'open', v: 1, task: 'stream', model: name },
      format: { encoding: 'linear16', rate: 8_000, channels: 1 },
      options: { interim: true, endpointingMs: 600 },
    },
  );
  if (!opened.ok) throw new Error(opened.refusal.reason);
  return opened.value;
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
