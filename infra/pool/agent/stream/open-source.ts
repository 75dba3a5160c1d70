import { limits } from '../../../../shared/limits.ts';
import { refuse } from '../../../../shared/refusal.ts';
import { no, type Result } from '../../../../shared/result.ts';
import { bytesPerSecond, type StreamFormat } from '../../../../shared/stream/format.ts';
import { MODEL_RATE } from '../audio/mono.ts';
import { createPacketSource } from './packets.ts';
import { createPcmSource } from './pcm.ts';
import type { Origin, Source } from './source.ts';

/** `skip` frames from `origin` on are decoded and not given out. */
export async function openSource(format: StreamFormat, origin: Origin, skip: number): Promise<Result<Source>> {
  if (bytesPerSecond(format) !== undefined) return createPcmSource(format, origin);
  if (skip > limits.streamSkipSeconds.value * MODEL_RATE)
    return no(refuse('seal_broken', undefined, 'state of a checkpoint'));
  return createPacketSource(format, origin, skip);
}
