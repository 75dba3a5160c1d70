/** A WAV file of 16-bit mono samples. `dataBytes` lies about the length. */
export function wavFile(samples: Float32Array, rate = 16_000, dataBytes = samples.length * 2): Uint8Array {
  const bytes = new Uint8Array(44 + samples.length * 2);
  const view = new DataView(bytes.buffer);
  const ascii = (at: number, text: string) => bytes.set(new TextEncoder().encode(text), at);
  ascii(0, 'RIFF');
  view.setUint32(4, 36 + dataBytes, true);
  ascii(8, 'WAVEfmt ');
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true);
  view.setUint16(22, 1, true);
  view.setUint32(24, rate, true);
  view.setUint32(28, rate * 2, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  ascii(36, 'data');
  view.setUint32(40, dataBytes, true);
  for (const [i, sample] of samples.entries()) view.setInt16(44 + i * 2, Math.round(sample * 32_767), true);
  return bytes;
}

/** Pulses through a formant, with a falling pitch: enough of a voice for a voice detector. Always the same. */
export function voice(seconds: number, rate = 16_000): Float32Array {
  const samples = new Float32Array(Math.round(seconds * rate));
  const resonances = [
    { hz: 600, width: 80, y1: 0, y2: 0 },
    { hz: 1_200, width: 120, y1: 0, y2: 0 },
    { hz: 2_500, width: 160, y1: 0, y2: 0 },
  ];
  let phase = 0;
  for (let i = 0; i < samples.length; i++) {
    phase += (120 + 15 * Math.sin(i / (0.15 * rate))) / rate;
    const pulse = phase >= 1 ? 1 : 0;
    phase -= pulse;
    let sum = 0;
    for (const r of resonances) {
      const radius = Math.exp((-Math.PI * r.width) / rate);
      const y = pulse + 2 * radius * Math.cos((2 * Math.PI * r.hz) / rate) * r.y1 - radius * radius * r.y2;
      r.y2 = r.y1;
      r.y1 = y;
      sum += y;
    }
    samples[i] = sum * 0.05;
  }
  return samples;
}

export const silence = (seconds: number, rate = 16_000): Float32Array => new Float32Array(Math.round(seconds * rate));

export function joinSamples(...parts: readonly Float32Array[]): Float32Array {
  const out = new Float32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

export const boundary = 'auricle-boundary';
export const multipart = `multipart/form-data; boundary=${boundary}`;

export interface Part {
  readonly name: string;
  readonly value: string | Uint8Array;
  readonly filename?: string;
}

export function formBytes(parts: readonly Part[], end = true): Uint8Array {
  const pieces = parts.flatMap(({ name, value, filename }) => [
    Buffer.from(
      `--${boundary}\r\ncontent-disposition: form-data; name="${name}"${filename ? `; filename="${filename}"\r\ncontent-type: application/octet-stream` : ''}\r\n\r\n`,
    ),
    Buffer.from(value),
    Buffer.from('\r\n'),
  ]);
  return Buffer.concat([...pieces, ...(end ? [Buffer.from(`--${boundary}--\r\n`)] : [])]);
}

export const audioForm = (file: Uint8Array, fields: readonly Part[] = [{ name: 'model', value: 'test-en' }]) =>
  formBytes([...fields, { name: 'file', value: file, filename: 'a.wav' }]);
