// Microphone of a browser, as a source for `LiveStream.sendAll`.
import { CaptureBuffer } from './capture-buffer.ts';
import type { StreamFormat } from './contract.ts';
import { StreamError } from './events.ts';

/** Rate of the models: a device's own 48 kHz would take three times the upload bandwidth. */
const SAMPLE_RATE_HZ = 16_000;
/** Sound of one chunk: short for a listener, and few messages a second for the edge. */
const CHUNK_MS = 40;
/** Sound that waits for a reader: the time after which a stream without a connection fails. */
const BUFFERED_MS_MAX = 60_000;
/** Time that the audio thread has to hand over its last samples, ms: it answers in a few, unless it is suspended. */
const FLUSH_MS_MAX = 100;

/** Mono 16-bit samples of a microphone. Iterate once. */
export interface Microphone extends AsyncIterable<Uint8Array> {
  readonly format: StreamFormat;
  /** Releases the device within 100 ms. The iteration yields what was captured and not read, and ends. */
  stop(): void;
}

/** Runs in the audio thread of the browser. Posts samples in chunks, and on a message the rest and `null`. */
const PROCESSOR = `registerProcessor('auricle-capture', class extends AudioWorkletProcessor {
  constructor({ processorOptions }) {
    super();
    this.chunk = new Int16Array(processorOptions.samples);
    this.filled = 0;
    this.port.onmessage = () => {
      if (this.filled > 0) this.port.postMessage(this.chunk.slice(0, this.filled));
      this.port.postMessage(null);
    };
  }
  process([[samples = []]]) {
    for (const sample of samples) {
      this.chunk[this.filled++] = Math.max(-1, Math.min(1, sample)) * 0x7fff;
      if (this.filled < this.chunk.length) continue;
      this.port.postMessage(this.chunk);
      this.filled = 0;
    }
    return true;
  }
});`;

/**
 * Opens the microphone; call it in a click handler, since browsers start audio on a gesture only. `constraints`
 * choose the device and its processing. Throws the `DOMException` of `getUserMedia` when permission is denied
 * or no device exists. Iterating throws `StreamError` when the device is lost, or the reader is a minute late.
 */
export async function openMicrophone(constraints: MediaTrackConstraints = {}): Promise<Microphone> {
  if (!navigator.mediaDevices)
    throw new StreamError('microphone_unavailable', 'Browsers open a microphone on pages of https or localhost only.');
  const media = await navigator.mediaDevices.getUserMedia({ audio: { channelCount: 1, ...constraints } });
  const buffer = new CaptureBuffer(BUFFERED_MS_MAX / CHUNK_MS);
  try {
    const { context, node } = await record(media);
    buffer.release = () => {
      for (const track of media.getTracks()) track.stop();
      void context.close();
    };
    node.port.onmessage = ({ data }: MessageEvent<Int16Array<ArrayBuffer> | null>) =>
      data ? buffer.push(new Uint8Array(data.buffer)) : buffer.end();
    for (const track of media.getTracks())
      track.onended = () => buffer.end(new StreamError('microphone_lost', 'The microphone was removed or blocked.'));
    return {
      format: { encoding: 'linear16', rate: context.sampleRate, channels: 1 },
      stop: () => {
        node.port.postMessage(null);
        setTimeout(() => buffer.end(), FLUSH_MS_MAX);
      },
      [Symbol.asyncIterator]: () => buffer.read(),
    };
  } catch (error) {
    for (const track of media.getTracks()) track.stop();
    throw error;
  }
}

/** Connects the sound to the processor. */
async function record(media: MediaStream): Promise<{ context: AudioContext; node: AudioWorkletNode }> {
  const { context, source } = openContext(media);
  const module = URL.createObjectURL(new Blob([PROCESSOR], { type: 'text/javascript' }));
  try {
    await context.audioWorklet.addModule(module);
    const node = new AudioWorkletNode(context, 'auricle-capture', {
      channelCount: 1,
      channelCountMode: 'explicit',
      processorOptions: { samples: (context.sampleRate * CHUNK_MS) / 1_000 },
    });
    // The node plays silence: some browsers run only what leads to the loudspeaker.
    source.connect(node).connect(context.destination);
    void context.resume();
    return { context, node };
  } catch (error) {
    void context.close();
    throw error;
  } finally {
    URL.revokeObjectURL(module);
  }
}

function openContext(media: MediaStream): { context: AudioContext; source: MediaStreamAudioSourceNode } {
  const open = (options?: AudioContextOptions) => {
    const context = new AudioContext(options);
    try {
      return { context, source: context.createMediaStreamSource(media) };
    } catch (error) {
      void context.close();
      throw error;
    }
  };
  try {
    return open({ sampleRate: SAMPLE_RATE_HZ });
  } catch {
    // Firefox does not resample a microphone (bug 1674892): its own rate is sent.
    return open();
  }
}
