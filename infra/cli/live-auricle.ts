// A live stream as apps make it, with the client for apps: what the edge has not settled is sent again after a drop.
import { WebSocket } from 'ws';
import { StreamError } from '../../edge/client/events.ts';
import { openStream } from '../../edge/client/stream.ts';
import { limits } from '../../shared/limits.ts';
import type { Dialect, LiveStream } from './live.ts';
import { told } from './live-socket.ts';

/** Events of a stream that goes on without a loss. */
const notable = new Set(['moved', 'reconnecting', 'ending']);

export const auricle: Dialect = {
  // Tenths of a second have whole samples.
  rateFor: ({ rate }) =>
    rate % 10 === 0 && rate >= limits.audioRateMin.value && rate <= limits.audioRateMax.value ? rate : 16_000,
  open({ edge, token, model, language, rate, onNews }) {
    const count = { sent: 0, received: 0 };
    /** The platform's own one says nothing about bytes. */
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
      patienceMs: limits.liveOpenMs.value,
      WebSocket: Counted as never,
    });
    const { promise, resolve } = Promise.withResolvers<Awaited<ReturnType<Dialect['open']>>>();
    const ended = Promise.withResolvers<Awaited<ReturnType<LiveStream['finish']>>>();
    const live: LiveStream = {
      // A stream that has failed says so where it ends.
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
        if (event.type === 'ready') resolve(live);
        if (notable.has(event.type)) onNews({ type: 'notice', code: event.type }, now);
        if (event.type !== 'interim' && event.type !== 'segment') continue;
        const { index, text, words, type } = event;
        const wordEnds = words.map(({ end }) => end);
        onNews({ type: 'words', text, utterance: index, wordEnds, final: type === 'segment' }, now);
      }
    };
    read().then(
      () => ended.resolve({ code: undefined }),
      (error: unknown) => {
        ended.resolve(
          error instanceof StreamError
            ? { code: error.reason, message: told(error.message, error.request) ?? error.reason }
            : { code: 'failed' },
        );
      },
    );
    void ended.promise.then(({ code = 'ended_early', ...rest }) => resolve({ code, ...rest }));
    return promise;
  },
};
