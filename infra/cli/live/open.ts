// Live streams by the app client, which resends unacknowledged audio after a drop.
import { WebSocket } from 'ws';
import { StreamError } from '../../../edge/client/events.ts';
import { openStream } from '../../../edge/client/stream.ts';
import { AUDIO_RATE_MAX_HZ, AUDIO_RATE_MIN_HZ } from '../../../shared/speech/wav.ts';
import { withRequest } from '../answer.ts';
import type { LiveAudio } from './audio.ts';
import type { LiveEnd, LiveStream, LiveTarget } from './live.ts';

/** Longest handshake and start of a stream of the CLI, and search for an edge. */
const LIVE_OPEN_MS = 30_000;

/** Events of a stream that continues without a loss. */
const notices = new Set(['moved', 'reconnecting', 'ending']);

/** Returns the sample rate to send: that of the recording where the edge accepts it. */
export const rateFor = ({ rate }: LiveAudio): number =>
  // A frame of a tenth of a second has whole samples.
  rate % 10 === 0 && rate >= AUDIO_RATE_MIN_HZ && rate <= AUDIO_RATE_MAX_HZ ? rate : 16_000;

/** Opens a stream. Resolves when audio can be sent, or with the code of the refusal. Never rejects. */
export function openLive({ edge, token, model, language, rate, onNews }: LiveTarget) {
  const count = { sent: 0, received: 0 };
  /** Counts bytes, which the global WebSocket does not report. */
  class Counted extends WebSocket {
    constructor(url: string, protocols: string[]) {
      super(url, protocols, { perMessageDeflate: false });
      this.on('message', (data: Buffer) => {
        count.received += data.length;
      });
    }
    override send(message: string | Uint8Array): void {
      count.sent += message.length;
      super.send(message);
    }
  }
  const stream = openStream({
    url: `${edge}/v1/stream`,
    token,
    model,
    ...(language !== undefined && { language }),
    format: { encoding: 'linear16', rate, channels: 1 },
    patienceMs: LIVE_OPEN_MS,
    WebSocket: Counted as never,
  });
  const opened = Promise.withResolvers<LiveStream | (LiveEnd & { readonly code: string })>();
  const ended = Promise.withResolvers<LiveEnd>();
  const live: LiveStream = {
    // `finish` reports a failed stream.
    send: (frame) => stream.send(frame).catch(() => {}),
    async finish() {
      void stream.end().catch(() => {});
      return ended.promise;
    },
    lost: ended.promise.then(({ code }) => ({ code: code ?? 'ended_early' })),
    bytes: () => ({ ...count }),
  };
  const read = async () => {
    for await (const event of stream.events) {
      const now = performance.now();
      if (event.type === 'ready') opened.resolve(live);
      if (notices.has(event.type)) onNews({ type: 'notice', code: event.type }, now);
      if (event.type !== 'interim' && event.type !== 'segment') continue;
      const { index, text, words, type } = event;
      const wordEnds = words.map(({ end }) => end);
      onNews({ type: 'words', text, utterance: index, wordEnds, final: type === 'segment' }, now);
    }
  };
  read().then(
    () => ended.resolve({ code: undefined }),
    (error: unknown) => ended.resolve(error instanceof StreamError ? endOf(error) : { code: 'failed' }),
  );
  void ended.promise.then(({ code = 'ended_early', ...rest }) => opened.resolve({ code, ...rest }));
  return opened.promise;
}

const endOf = ({ reason, message, request }: StreamError): LiveEnd => ({
  code: reason,
  message: withRequest(message, request) ?? reason,
});
