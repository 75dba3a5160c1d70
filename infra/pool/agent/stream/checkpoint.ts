import { z } from 'zod';
import type { StreamFormat } from '../../../../shared/stream/format.ts';
import { CHECKPOINT_CHARACTERS } from '../../../../shared/stream/limits.ts';
import type { Checkpoint } from '../../../../shared/stream/link.ts';
import { MOST_UNITS } from '../asr/vad/cut.ts';
import { MEMORY_BYTES, UNIT_SAMPLES } from '../asr/vad/detect.ts';
import { MODEL_RATE } from '../audio/mono.ts';
import { firstInput } from '../audio/resample.ts';
import type { Capture, HearingState } from './hearing.ts';
import { decodedRate } from './packets.ts';
import type { LastWord } from './scribe.ts';
import type { Origin } from './source.ts';

/**
 * Positions in a checkpoint: two days of frames at 48 kHz, twice any session; products with a rate stay
 * exact.
 */
const CHECKPOINT_FRAMES_MAX = 2 ** 33;

/** Version of the state's text. A state of another version is dropped, and the stream goes on without it. */
const VERSION = 1;

const upTo = (most: number) => z.number().int().nonnegative().max(most);
const frames = upTo(CHECKPOINT_FRAMES_MAX);

const state = z.object({
  v: z.literal(VERSION),
  /** Format that the frames are counted in. */
  format: z.string(),
  missing: frames,
  runFrame: frames,
  unit: upTo(CHECKPOINT_FRAMES_MAX / UNIT_SAMPLES),
  skip: frames,
  speaking: z.boolean(),
  run: z.number().int().nonnegative().max(MOST_UNITS),
  /** `1` for each unit held in which voice was found, `0` for the others. */
  voiced: z
    .string()
    .regex(/^[01]*$/)
    .max(MOST_UNITS),
  voice: z.base64().length(Math.ceil(MEMORY_BYTES / 3) * 4),
  speechUnits: frames,
  /** Number of the track in a container that describes it before the position. */
  track: frames.optional(),
  lastWord: z.object({ end: z.number().nonnegative(), told: z.boolean() }).optional(),
});

const nameOf = ({ encoding, rate, channels }: StreamFormat) => `${encoding} ${rate} ${channels}`;

/** How a stream goes on after a checkpoint. */
export interface Resumption {
  readonly origin: Origin;
  readonly hearing: HearingState;
  /** Memory of the voice detector. */
  readonly voice: Uint8Array | undefined;
  readonly lastWord: LastWord | undefined;
  readonly index: number;
}

/** Writes the position and state from which another agent can take over. */
export function writeCheckpoint(
  { position, time, track, state: hearing }: Capture,
  format: StreamFormat,
  index: number,
  lastWord: LastWord | undefined,
): Checkpoint {
  const { voice, cutter, ...counts } = hearing;
  const text: z.infer<typeof state> = {
    v: VERSION,
    format: nameOf(format),
    ...counts,
    track,
    speaking: cutter.speaking,
    run: cutter.run,
    voiced: cutter.voiced.map(Number).join(''),
    voice: Buffer.from(voice).toString('base64'),
    ...(lastWord && { lastWord }),
  };
  return { position, time: time / MODEL_RATE, index, state: Buffer.from(JSON.stringify(text)).toString('base64') };
}

function readState(text: string, format: StreamFormat): z.infer<typeof state> | undefined {
  if (text.length > CHECKPOINT_CHARACTERS) return undefined;
  try {
    const parsed = state.safeParse(JSON.parse(Buffer.from(text, 'base64').toString('utf8')));
    return parsed.success && parsed.data.format === nameOf(format) ? parsed.data : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Reads a checkpoint, maybe of another version or a foreign one: what cannot be read is dropped, and the
 * stream goes on with a fresh detector, at the time and with the numbers that the edge knows.
 */
export function readCheckpoint(from: Checkpoint | undefined, format: StreamFormat): Resumption {
  const read = from && readState(from.state, format);
  if (!read) {
    const hearing = {
      missing: Math.round((from?.time ?? 0) * MODEL_RATE),
      runFrame: 0,
      unit: 0,
      skip: 0,
      cutter: { speaking: false, run: 0, voiced: [] },
      voice: new Uint8Array(0),
      speechUnits: 0,
    };
    const origin = { position: from?.position ?? 0, frame: 0 };
    return { origin, hearing, voice: undefined, lastWord: undefined, index: from?.index ?? 0 };
  }
  const { speaking, run, voiced, voice, lastWord, missing, runFrame, unit, skip, speechUnits, track } = read;
  const memory = new Uint8Array(Buffer.from(voice, 'base64'));
  const flags = [...voiced].map((flag) => flag === '1');
  const frame = runFrame + firstInput(decodedRate(format), MODEL_RATE, unit * UNIT_SAMPLES) - skip;
  return {
    origin: { position: from.position, frame, track },
    hearing: {
      missing,
      runFrame,
      unit,
      skip,
      // Only units that hold a voice count as speech.
      cutter: { speaking: speaking && flags.includes(true), run: Math.min(run, flags.length), voiced: flags },
      voice: memory,
      speechUnits,
    },
    voice: memory,
    lastWord,
    index: from.index,
  };
}
