import type { Refusal } from '../../shared/refusal.ts';
import { auricleStream } from './auricle-stream.ts';
import { deepgramListen } from './deepgram-listen.ts';
import { refuseAsDeepgram } from './deepgram-refuse.ts';
import type { LiveProtocolFactory, LiveProtocolName } from './live-protocol.ts';
import { openaiRealtime } from './openai-realtime.ts';

interface Row {
  readonly make: LiveProtocolFactory;
  /** Refuses a handshake. Without it the refusal comes on an accepted socket. */
  readonly refuse?: (refusal: Refusal, request: string) => Response;
}

/** The protocols of live streams. */
export const liveProtocols: Readonly<Record<LiveProtocolName, Row>> = {
  'auricle-stream': { make: auricleStream },
  'openai-realtime': { make: openaiRealtime },
  'deepgram-listen': { make: deepgramListen, refuse: refuseAsDeepgram },
};
