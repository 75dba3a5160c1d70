import { refuse } from '../../../../shared/refusal.ts';
import { no, type Result } from '../../../../shared/result.ts';
import { bytesPerSecond, type StreamFormat } from '../../../../shared/stream/format.ts';
import { createPacketSource, decodedRate } from './packets.ts';
import { createPcmSource } from './pcm.ts';
import type { Origin, Source } from './source.ts';

/**
 * Sound decoded again and discarded when a stream moves to another agent: a page of Ogg may hold half a
 * minute.
 */
const STREAM_SKIP_S = 60;

/** `skip` frames from `origin` on are decoded and not given out. */
export async function openSource(format: StreamFormat, origin: Origin, skip: number): Promise<Result<Source>> {
  if (bytesPerSecond(format) !== undefined) return createPcmSource(format, origin);
  const isLost = format.encoding === 'webm' && origin.position > 0 && origin.track === undefined;
  // Behind its head a WebM stream is readable only with the number of the track.
  if (isLost || skip > STREAM_SKIP_S * decodedRate(format)) {
    return no(refuse('seal_broken', undefined, 'state of a checkpoint'));
  }
  return createPacketSource(format, origin, skip);
}
