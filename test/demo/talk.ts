// A live stream that stays open while revisions change.
import { openStream } from '../../edge/client/stream.ts';
import type { Stack } from '../../infra/local/stack.ts';
import type { Clip } from '../stack/clips.ts';
import { liveSound, pieces } from '../stack/live-sound.ts';

export interface Understood {
  readonly words: string;
  /** Revision of each connection to an agent. */
  readonly revisions: readonly string[];
}

export interface Talk {
  /** Says the rest, and hangs up. */
  end(): Promise<Understood>;
}

/** Has said half of it, and is heard, when this settles. */
export async function talk({ url, token }: Stack, model: string, clip: Clip): Promise<Talk> {
  const sound = liveSound(clip);
  const said = [...pieces(sound)];
  const half = said.splice(0, Math.ceil(said.length / 2));
  const format = { encoding: 'linear16', rate: sound.rate, channels: 1 } as const;
  const stream = openStream({ url: `${url}/v1/stream`, token, model, format });
  const heard = Promise.withResolvers<void>();
  heard.promise.catch(() => {});
  const [revisions, words]: [string[], string[]] = [[], []];
  const reading = (async () => {
    for await (const event of stream.events) {
      if (event.type === 'segment') words.push(event.text);
      if (event.type !== 'ready') continue;
      revisions.push(event.revision);
      heard.resolve();
    }
  })();
  reading.catch(heard.reject);
  await stream.sendAll(half);
  await heard.promise;
  return {
    async end() {
      await stream.sendAll(said);
      await stream.end();
      await reading;
      return { words: words.join(' '), revisions };
    },
  };
}
