import type { Refusal } from '../../shared/refusal.ts';
import { auricleStream } from '../dialect/auricle-stream.ts';
import { deepgramListen } from '../dialect/deepgram-listen.ts';
import { refuseAsDeepgram } from '../dialect/deepgram-refuse.ts';
import { openaiRealtime } from '../dialect/openai-realtime.ts';
import type { DialectFactory, DialectName } from './dialect.ts';

interface Row {
  readonly make: DialectFactory;
  /** Refuses the handshake of a request that no agent serves. Without it the refusal comes on an accepted socket. */
  readonly refuse?: (refusal: Refusal, request: string) => Response;
}

/** How each dialect of live streams is made. A row is added where its dialect is written. */
export const dialects: Readonly<Record<DialectName, Row>> = {
  'auricle-stream': { make: auricleStream },
  'openai-realtime': { make: openaiRealtime },
  'deepgram-listen': { make: deepgramListen, refuse: refuseAsDeepgram },
};
