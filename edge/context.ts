import type { Span } from '../shared/trace/span.ts';
import type { Runtime } from './clock.ts';
import type { Quota } from './ledger/quota.ts';
import type { Recorder } from './ledger/record.ts';
import type { Place } from './place.ts';
import type { Bindings, Settings } from './settings.ts';
import type { Telemetry } from './telemetry/telemetry.ts';

/** Decoded parameters of a route's path. `name` is empty where the path has no parameters. */
export interface PathParams {
  readonly name: string;
  readonly [param: string]: string | undefined;
}

/** Answers a request of one route. */
export type Handler = (request: Request, context: RequestContext, params: PathParams) => Promise<Response>;

/** Context of a route, passed with the request. */
export interface RequestContext {
  /** Also in the header `x-request-id` and in every audit event of the request. */
  readonly id: string;
  /** Method and path; absent in a Durable Object. */
  readonly address?: string;
  /** Place of the edge that serves the caller; absent when the platform does not say. */
  readonly place?: Place | undefined;
  readonly env: Bindings;
  readonly settings: Settings;
  readonly runtime: Runtime;
  readonly recorder: Recorder;
  /** Reads and discards the rest of the body; the reader of the body sets it. */
  discardBody: (() => Promise<void>) | undefined;
  /** The caller's remaining allowance after this request, for the rate-limit headers. */
  quota?: Quota | undefined;
  /** Model that serves the request, for the header `x-auricle-model`. */
  model?: string | undefined;
  /** Quality of a degraded pool's answer, for the headers `x-auricle-degraded` and `cache-status` (RFC 9211). */
  degraded?: { readonly level: number; readonly isCached: boolean } | undefined;
  /** A session was admitted, which reports the request at its end. */
  admitted?: boolean;
  /** The request is counted, or another object counts it. */
  counted?: boolean;
  /** Absent in tests that make a context themselves. */
  readonly telemetry?: Telemetry | undefined;
  /** Span of the request; absent where it is in no trace. */
  readonly span?: Span | undefined;
  /** Keeps the isolate alive after the response was sent. */
  readonly waitUntil: (work: Promise<unknown>) => void;
  /** Ends the request and its sockets without a close frame; absent in a Durable Object. */
  readonly abort?: (reason: string) => void;
}
