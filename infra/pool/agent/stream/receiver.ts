import { setImmediate } from 'node:timers/promises';
import { refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import type { LinkControl } from '../../../../shared/stream/link.ts';
import type { LinkMessage } from '../../../../shared/stream/link-record.ts';
import { MODEL_RATE } from '../audio/mono.ts';
import { TURN_S } from '../settings/limits.ts';
import { createAcknowledgements } from './acknowledgements.ts';
import type { Clock } from './clock.ts';
import type { Hearing } from './hearing.ts';
import type { Scribe } from './scribe.ts';

export interface ReceiverParts {
  readonly hearing: Hearing;
  readonly scribe: Scribe;
  /** Takes the answers to requests, behind what was said before. */
  readonly answers: Pick<Scribe, 'event'>;
  readonly clock: Clock;
  /** Byte of the session that audio begins with. */
  readonly position: number;
  /** Acknowledges audio up to a position. */
  readonly acknowledge: (position: number) => void;
}

const wrong = (detail: string) => no(refuse('seal_broken', undefined, `stream: ${detail}`));

type Later = Exclude<LinkControl, { type: 'open' | 'end' }>;
type Controls = { [T in Later['type']]: (control: Extract<Later, { type: T }>) => Result<undefined> };

/** Takes the edge's messages after `open` in order, and checks that each follows on the one before. */
export function createReceiver({ hearing, scribe, answers, clock, position: start, acknowledge }: ReceiverParts) {
  /** Byte of the session that comes next. */
  let next = start;
  /** Time of the last turn of the event loop that was yielded. */
  let turnAt = hearing.time();
  const acknowledgements = createAcknowledgements({ clock }, acknowledge);

  function onAudio(position: number, audio: Uint8Array): Result<undefined> | Promise<Result<undefined>> {
    if (position !== next) return wrong('audio at another position');
    next += audio.length;
    const pushed = hearing.push(position, audio);
    if (!pushed.ok) return pushed;
    acknowledgements.received(next);
    scribe.received(hearing.time() / MODEL_RATE);
    if (hearing.time() - turnAt <= TURN_S * MODEL_RATE) return ok(undefined);
    turnAt = hearing.time();
    return setImmediate(ok(undefined));
  }

  const controls: Controls = {
    finalize({ id, position }) {
      // The edge repeats requests that an earlier agent has fulfilled; nothing is left to do.
      if (position > next) return wrong('finalize of audio to come');
      hearing.finalize();
      answers.event({ type: 'finalized', id });
      return ok(undefined);
    },
    clear({ id, position }) {
      if (position > next) return wrong('clear of audio to come');
      hearing.clear();
      answers.event({ type: 'cleared', id });
      return ok(undefined);
    },
    options({ options }) {
      hearing.options(options);
      scribe.options(options);
      return ok(undefined);
    },
  };

  return {
    /** Refuses with `seal_broken` a message out of order, with `audio_invalid` bytes that are no audio. */
    take(message: LinkMessage): Result<undefined> | Promise<Result<undefined>> {
      if (message.kind === 'audio') return onAudio(message.position, message.audio);
      const { control } = message;
      if (control.type === 'open') return wrong('opened twice');
      if (control.type === 'end') return wrong('an end that is not the last record');
      return (controls[control.type] as (later: Later) => Result<undefined>)(control);
    },
    stop: acknowledgements.stop,
  };
}
