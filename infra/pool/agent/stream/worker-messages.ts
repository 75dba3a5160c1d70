import type { IncomingHttpHeaders } from 'node:http';
import type { ModelDescription } from '../../../../shared/pool/description.ts';
import type { Detector } from '../asr/detect-language.ts';
import type { LiveModel } from '../models/live-model.ts';
import type { RecogniserSource } from '../models/recogniser.ts';
import type { Ticket } from '../request/ticket.ts';
import type { EngineSettings } from '../settings/settings.ts';
import type { ExportedMetrics } from '../telemetry/metrics.ts';
import type { StreamOutcome } from './host.ts';

/** Settings of a stream worker. */
export interface WorkerSettings {
  readonly agent: string;
  readonly engine: EngineSettings;
  /** Steps of this worker at the engine at once. */
  readonly slots: number;
  readonly streams: number;
  readonly keepaliveMs: number;
  /** Decode AAC. */
  readonly aac: boolean;
}

/** A stream for a worker; its connection comes with the message. */
export interface StreamMessage {
  readonly type: 'stream';
  readonly id: number;
  readonly request: { readonly method: string | undefined; readonly headers: IncomingHttpHeaders };
  readonly head: Uint8Array;
  readonly ticket: Ticket;
  readonly description: ModelDescription;
  readonly live: LiveModel | undefined;
  readonly detector: Detector | undefined;
  readonly requestKey: Uint8Array;
  readonly answerKey: Uint8Array;
}

export type ToWorker =
  | { readonly type: 'start'; readonly settings: WorkerSettings }
  /** Models to have ready; streams name their revisions. */
  | { readonly type: 'models'; readonly sources: readonly RecogniserSource[] }
  | StreamMessage
  /** The agent no longer reads the connection: the worker may answer the upgrade. */
  | { readonly type: 'go' | 'drain' | 'stop'; readonly id: number }
  | { readonly type: 'metrics'; readonly id: number }
  | { readonly type: 'close'; readonly milliseconds: number };

export type FromWorker =
  | { readonly type: 'ready' }
  | { readonly type: 'taken'; readonly id: number }
  | { readonly type: 'ended'; readonly id: number; readonly outcome: StreamOutcome }
  | { readonly type: 'metrics'; readonly id: number; readonly metrics: ExportedMetrics };
