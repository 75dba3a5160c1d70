import type { Dialect, DialectName } from './live.ts';
import { auricle } from './live-auricle.ts';
import { deepgram } from './live-deepgram.ts';
import { openai } from './live-openai.ts';

export const dialects: Readonly<Record<DialectName, Dialect>> = { auricle, deepgram, openai };
