import { readFileSync } from 'node:fs';
import path from 'node:path';
import { aacRates } from '../../../../shared/speech/format.ts';

/** Bytes for which the module has room: the longest frame of two channels takes 1.5 KB. */
const INPUT_BYTES = 8_192;

let compiled: WebAssembly.Module | undefined;

/**
 * Turns AAC on in this process. Patents on AAC-LC last until 2028 in some countries, so an operator decides (README,
 * "AAC").
 */
export function enableAac(): void {
  compiled ??= new WebAssembly.Module(readFileSync(path.join(import.meta.dirname, 'aac/decoder.wasm')));
}

export const isAacEnabled = (): boolean => compiled !== undefined;

interface Exports {
  readonly memory: WebAssembly.Memory;
  input(): number;
  output(): number;
  open(bytes: number): number;
  decode(bytes: number): number;
}

/** Audio object types that are not AAC-LC (ISO/IEC 14496-3 table 1.17). */
const objectTypes: Readonly<Record<number, string>> = {
  1: 'AAC Main',
  3: 'AAC SSR',
  4: 'AAC LTP',
  5: 'HE-AAC',
  23: 'AAC-LD',
  29: 'HE-AAC v2',
  32: 'MP1',
  33: 'MP2',
  34: 'MP3',
  36: 'ALS',
  39: 'AAC-ELD',
  42: 'xHE-AAC',
};
const LC = 2;
/** Announces spectral band replication behind the configuration of a core (§1.6.5). */
const SYNC_EXTENSION = 0x2b7;

export interface AacFormat {
  readonly rate: number;
  readonly channels: number;
}

/** Reads an AudioSpecificConfig (§1.6.2.1). Returns the name of what is not AAC-LC of one or two channels. */
export function readAacConfig(config: Uint8Array): AacFormat | string {
  let at = 0;
  function bits(count: number): number {
    let value = 0;
    for (let i = 0; i < count; i++, at++) value = (value << 1) | (((config[at >> 3] ?? 0) >> (7 - (at & 7))) & 1);
    return value;
  }
  const first = bits(5);
  const type = first === 31 ? 32 + bits(6) : first;
  if (type !== LC) return objectTypes[type] ?? `MPEG-4 audio object type ${type}`;
  const index = bits(4);
  const rate = index === 15 ? bits(24) : aacRates[index];
  const layout = bits(4);
  if (rate === undefined || rate === 0) return 'AAC without a sample rate';
  if (layout !== 1 && layout !== 2) return `AAC of channel layout ${layout}`;
  if (bits(1)) return 'AAC of 960 samples a frame';
  at += bits(1) ? 14 : 0;
  at += 1;
  if (at + 17 <= 8 * config.length && bits(11) === SYNC_EXTENSION && bits(5) === 5 && bits(1)) return 'HE-AAC';
  return { rate, channels: layout };
}

/** A decoder of one stream of AAC-LC in a WebAssembly instance of its own. Undefined for what it cannot open. */
export function openAac(config: Uint8Array, { channels }: AacFormat) {
  if (!compiled) throw new Error('AAC is not enabled');
  const exports = new WebAssembly.Instance(compiled, {}).exports as unknown as Exports;

  function write(bytes: Uint8Array): number {
    new Uint8Array(exports.memory.buffer, exports.input(), bytes.length).set(bytes);
    return bytes.length;
  }
  if (config.length > INPUT_BYTES || exports.open(write(config)) === 0) return undefined;
  return {
    /** Samples by channel; undefined for a damaged packet. Throws a `WebAssembly.RuntimeError` on some damage. */
    decode(packet: Uint8Array): Float32Array[] | undefined {
      if (packet.length > INPUT_BYTES) return undefined;
      const frames = exports.decode(write(packet));
      if (frames === 0) return undefined;
      const samples = new Float32Array(exports.memory.buffer, exports.output(), frames * channels).slice();
      return Array.from({ length: channels }, (_, channel) =>
        samples.subarray(channel * frames, (channel + 1) * frames),
      );
    },
  };
}
