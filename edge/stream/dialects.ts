import { auricleStream } from '../dialect/auricle-stream.ts';
import { deepgramListen } from '../dialect/deepgram-listen.ts';
import { openaiRealtime } from '../dialect/openai-realtime.ts';
import type { DialectFactory, DialectName } from './dialect.ts';

/** How each dialect of live streams is made. A row is added where its dialect is written. */
export const dialects: Partial<Readonly<Record<DialectName, DialectFactory>>> = {
  'auricle-stream': auricleStream,
  'openai-realtime': openaiRealtime,
  'deepgram-listen': deepgramListen,
};
