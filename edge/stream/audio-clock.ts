import { bytesPerSecond, type StreamFormat } from '../../shared/stream/format.ts';
import { secondsOf } from './audio-duration.ts';

/** Counts the seconds of a stream, from its first sample. Where the format does not show them, agents report them. */
export class AudioClock {
  readonly #format: StreamFormat;
  readonly #bytesPerSecond: number | undefined;
  #end: number;
  #received: number;
  #processed: number;
  /** Seconds of a byte, as agents measured it. */
  #secondsPerByte = 0;

  constructor(format: StreamFormat, time: number) {
    this.#format = format;
    this.#bytesPerSecond = bytesPerSecond(format);
    this.#end = time;
    this.#received = time;
    this.#processed = time;
  }

  /** Time of the last sample in the buffer. */
  get end(): number {
    return this.#end;
  }

  /** Seconds received since the session began. */
  get received(): number {
    return this.#received;
  }

  /** Seconds that agents processed since the session began. */
  get processed(): number {
    return this.#processed;
  }

  /** Returns the seconds of a message, 0 where only an agent knows them. */
  measure(audio: Uint8Array): number {
    return secondsOf(audio, this.#format) ?? 0;
  }

  /** Returns the seconds of a message that no agent will get. */
  estimate(audio: Uint8Array): number {
    return secondsOf(audio, this.#format) ?? audio.length * this.#secondsPerByte;
  }

  receive(seconds: number): void {
    this.#end += seconds;
    this.#received += seconds;
  }

  /** Notes that an agent processed the audio up to `time`, and that `bytesLeft` of the buffer follow. */
  process(time: number, bytesLeft: number): void {
    const rate = this.#bytesPerSecond;
    if (rate === undefined) this.#received = Math.max(this.#received, time);
    this.#processed = Math.max(this.#processed, rate === undefined ? time : this.#received - bytesLeft / rate);
  }

  /** Learns from an agent that the audio up to `position` lasts until `time`. */
  calibrate(position: number, time: number): void {
    if (position > 0) this.#secondsPerByte = time / position;
    // A packet of Opus shows its length, a container does not.
    if (this.#bytesPerSecond === undefined && this.#format.encoding !== 'opus') this.#end = Math.max(this.#end, time);
  }

  /** Notes that an agent processed the whole stream, which lasts until `time`. */
  finish(time: number): void {
    this.process(time, 0);
    this.#processed = this.#received;
  }
}
