// An agent as the protocol has it, without a recogniser: letters are words, a full stop ends an utterance. Everything
// it says follows from the audio and from where it began.

import type { ClientEvent } from '../../../edge/stream/event-filter.ts';
import type { Frame } from '../../../edge/stream/replay-buffer.ts';
import type { Checkpoint } from '../../../shared/stream/link.ts';

const RATE = 8_000;

export type Report =
  | { readonly type: 'heard'; readonly position: number; readonly time: number }
  | ({ readonly type: 'checkpoint' } & Checkpoint)
  | {
      readonly type: 'segment';
      readonly index: number;
      readonly text: string;
      readonly start: number;
      readonly end: number;
    }
  | { readonly type: 'finalized' | 'cleared'; readonly id: number }
  | { readonly type: 'final'; readonly segments: number; readonly time: number };

export class AgentModel {
  #position: number;
  #zero: { position: number; time: number };
  #index: number;
  #text = '';
  #start = 0;

  constructor(from?: Checkpoint) {
    this.#position = from?.position ?? 0;
    this.#zero = { position: this.#position, time: from?.time ?? 0 };
    this.#index = from?.index ?? 0;
  }

  get #time(): number {
    return Math.round(this.#zero.time * RATE + this.#position - this.#zero.position) / RATE;
  }

  receive(frame: Frame): Report[] {
    if (frame.kind === 'audio') return this.#listen(frame.position, frame.audio);
    const { control } = frame;
    switch (control.type) {
      case 'finalize':
        if (control.position !== this.#position) throw new Error('a question at another place');
        return [...this.#cut(), { type: 'finalized', id: control.id }];
      case 'clear':
        this.#text = '';
        return [this.#checkpoint(), { type: 'cleared', id: control.id }];
      case 'end':
        return [...this.#cut(), { type: 'final', segments: this.#index, time: this.#time }];
      default:
        return [];
    }
  }

  #listen(position: number, audio: Uint8Array): Report[] {
    if (position !== this.#position) throw new Error(`audio at ${position}, not at ${this.#position}`);
    const reports: Report[] = [];
    for (const byte of audio) {
      const letter = String.fromCharCode(byte);
      if (this.#text === '') this.#start = this.#time;
      this.#position += 1;
      if (letter === '.') reports.push(...this.#cut());
      else if (letter !== ' ' || this.#text !== '') this.#text += letter;
    }
    return [...reports, { type: 'heard', position: this.#position, time: this.#time }];
  }

  #cut(): Report[] {
    if (this.#text.trim() === '') {
      this.#text = '';
      return [this.#checkpoint()];
    }
    const text = this.#text;
    this.#text = '';
    const report: Report = { type: 'segment', index: this.#index++, text, start: this.#start, end: this.#time };
    return [report, this.#checkpoint()];
  }

  #checkpoint(): Report {
    return { type: 'checkpoint', position: this.#position, time: this.#time, index: this.#index, state: '' };
  }
}

export const segmentOf = (report: Extract<Report, { type: 'segment' }>): Extract<ClientEvent, { type: 'segment' }> => ({
  ...report,
  confidence: 1,
  logProbability: 0,
  words: [],
  ending: 'endpoint',
});
