import type { Body } from '../../../../shared/kserve/body.ts';
import { type EngineRefusal, statusOf } from '../refuse.ts';

/** A response before it is written. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly chunks: readonly Uint8Array[];
}

const encoder = new TextEncoder();

export const json = (value: unknown, status = 200): Answer => ({
  status,
  headers: { 'content-type': 'application/json' },
  chunks: [encoder.encode(JSON.stringify(value))],
});

export const text = (value: string, type = 'text/plain; charset=utf-8'): Answer => ({
  status: 200,
  headers: { 'content-type': type },
  chunks: [encoder.encode(value)],
});

/** An answer without a body: success, or not ready. As in Triton, 200 or 400. */
export const empty = (good: boolean): Answer => ({ status: good ? 200 : 400, headers: {}, chunks: [] });

export const refused = ({ code, text: error }: EngineRefusal): Answer => json({ error }, statusOf[code]);

export const message = ({ headers, chunks }: Body): Answer => ({ status: 200, headers, chunks });
