import { readTraceparent, type TraceContext, writeTraceparent } from './traceparent.ts';

/** Kinds of spans, with their numbers in OTLP. */
export const spanKinds = { internal: 1, server: 2, client: 3 } as const;
export type SpanKind = keyof typeof spanKinds;

/** Facts of a span: names and numbers, never content, subjects or tokens. */
export type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;

export interface EndedSpan extends TraceContext {
  readonly parentId: string | undefined;
  readonly name: string;
  readonly kind: SpanKind;
  /** Epoch ms. */
  readonly began: number;
  readonly ended: number;
  readonly attributes: Attributes;
  /** Reason of a failure. */
  readonly failure: string | undefined;
}

/** Receives ended spans. */
export interface Tracer {
  readonly now: () => number;
  readonly record: (span: EndedSpan) => void;
}

/** A span in progress, or the trace context of a caller that is passed on unchanged. */
export interface Span {
  /** Header for the next hop. */
  readonly traceparent: string;
  child(name: string, kind: SpanKind, attributes?: Attributes): Span;
  /** The first call counts. */
  end(attributes?: Attributes, failure?: string): void;
}

export interface SpanStart {
  readonly name: string;
  readonly kind: SpanKind;
  /** Header of the caller. */
  readonly traceparent: string | null | undefined;
  /** Trace that begins where the caller has none; absent, none begins. 32 hex digits. */
  readonly newTrace?: string | undefined;
  readonly attributes?: Attributes;
}

/** Returns a span below the caller's. Without a tracer, or for a trace that is not sampled, the context is passed on. */
export function startSpan(
  { traceparent, newTrace, ...start }: SpanStart,
  tracer: Tracer | undefined,
): Span | undefined {
  const parent = readTraceparent(traceparent);
  if (parent && !(tracer && parent.isSampled)) return passOn(writeTraceparent(parent));
  const traceId = parent?.traceId ?? newTrace;
  if (!tracer || traceId === undefined) return undefined;
  return openSpan({ ...start, traceId, parentId: parent?.spanId }, tracer);
}

function passOn(traceparent: string): Span {
  const span: Span = { traceparent, child: () => span, end: () => {} };
  return span;
}

type Opening = Pick<EndedSpan, 'traceId' | 'parentId' | 'name' | 'kind'> & { readonly attributes?: Attributes };

function openSpan({ attributes = {}, ...opening }: Opening, tracer: Tracer): Span {
  const context = { traceId: opening.traceId, spanId: newSpanId(), isSampled: true };
  const began = tracer.now();
  let isEnded = false;
  return {
    traceparent: writeTraceparent(context),
    child: (name, kind, own = {}) =>
      openSpan({ traceId: context.traceId, parentId: context.spanId, name, kind, attributes: own }, tracer),
    end(more = {}, failure) {
      if (isEnded) return;
      isEnded = true;
      const all = { ...attributes, ...more };
      tracer.record({ ...opening, ...context, began, ended: tracer.now(), attributes: all, failure });
    },
  };
}

function newSpanId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  // An id of zeros is invalid.
  bytes[0] = (bytes[0] ?? 0) | 1;
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}
