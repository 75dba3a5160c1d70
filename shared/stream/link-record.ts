import { concat } from '../bytes.ts';
import { refuse } from '../refusal.ts';
import { no, ok, type Result } from '../result.ts';
import type { Room } from '../seal/records.ts';
import { type LinkControl, linkControl } from './link.ts';
import { POSITION_BYTES, readPosition, writePosition } from './position.ts';

/** First byte of a record from the edge to the agent. */
const CONTROL = 0;
const AUDIO = 1;

const newRoom: Room = (bytes) => new Uint8Array(bytes);

export type LinkMessage =
  | { readonly kind: 'control'; readonly control: LinkControl }
  | { readonly kind: 'audio'; readonly position: number; readonly audio: Uint8Array };

export function encodeControl(control: LinkControl): Uint8Array {
  return concat(Uint8Array.of(CONTROL), new TextEncoder().encode(JSON.stringify(control)));
}

/** `room`: returns memory for so many bytes, which may be reused. */
export function encodeAudio(position: number, audio: Uint8Array, room: Room = newRoom): Uint8Array {
  const record = room(1 + POSITION_BYTES + audio.length);
  record[0] = AUDIO;
  writePosition(record, 1, position);
  record.set(audio, 1 + POSITION_BYTES);
  return record;
}

/** Decodes a record. Refuses with `seal_broken` one that no edge of this version sends. */
export function decodeLinkRecord(record: Uint8Array): Result<LinkMessage> {
  const wrong = (detail: string) => no(refuse('seal_broken', undefined, `stream record: ${detail}`));
  if (record[0] === AUDIO) {
    if (record.length < 1 + POSITION_BYTES) return wrong('too short');
    return ok({ kind: 'audio', position: readPosition(record, 1), audio: record.subarray(1 + POSITION_BYTES) });
  }
  if (record[0] !== CONTROL) return wrong('unknown kind');
  let json: unknown;
  try {
    json = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(record.subarray(1)));
  } catch {
    return wrong('not JSON');
  }
  const control = linkControl.safeParse(json);
  return control.success ? ok({ kind: 'control', control: control.data }) : wrong('not understood');
}
