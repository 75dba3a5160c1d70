// A live stream as clients of Deepgram's `/v1/listen` make it.
import { z } from 'zod';
import type { Dialect } from './live.ts';
import { openSocket, socketUrl, told } from './live-socket.ts';

const word = z.object({ end: z.number() });
const message = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('Results'),
    is_final: z.boolean(),
    channel: z.object({
      alternatives: z.array(z.object({ transcript: z.string(), words: z.array(word) })).min(1),
    }),
  }),
  z.object({ type: z.literal('Metadata') }),
  z.object({
    type: z.literal('Error'),
    code: z.string().optional(),
    message: z.string().optional(),
    request_id: z.string().optional(),
  }),
]);

export const deepgram: Dialect = {
  // Tenths of a second have whole samples.
  rateFor: ({ rate }) => (rate % 10 === 0 ? rate : 16_000),
  open({ edge, token, model, language, rate, onNews }) {
    const url = socketUrl(edge, '/v1/listen');
    const format = { encoding: 'linear16', sample_rate: String(rate), channels: '1' };
    url.search = String(
      new URLSearchParams({ model, ...format, interim_results: 'true', ...(language !== undefined && { language }) }),
    );
    let utterance = 0;
    return openSocket({
      url,
      headers: { authorization: `Bearer ${token}` },
      begunWhenOpen: true,
      end: [JSON.stringify({ type: 'CloseStream' })],
      frame: (frame) => frame,
      hear(said, _, now) {
        const read = message.safeParse(said).data;
        if (read?.type === 'Metadata') return 'over';
        if (read?.type === 'Error') {
          return { refused: read.code ?? 'error', message: told(read.message, read.request_id) };
        }
        if (read?.type !== 'Results') return undefined;
        const [best] = read.channel.alternatives;
        if (!best) return undefined;
        const wordEnds = best.words.map(({ end }) => end);
        onNews({ type: 'words', text: best.transcript, utterance, wordEnds, final: read.is_final }, now);
        if (read.is_final) utterance += 1;
        return undefined;
      },
    });
  },
};
