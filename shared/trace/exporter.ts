import { type Attributes, type EndedSpan, spanKinds } from './span.ts';

/** Spans that wait for the collector; later ones are dropped (OTEL_BSP_MAX_QUEUE_SIZE). */
const SPANS_MAX = 2_048;
/** Spans of one post (OTEL_BSP_MAX_EXPORT_BATCH_SIZE). */
const BATCH_SPANS_MAX = 512;
/** Longest wait for a collector (OTEL_EXPORTER_OTLP_TIMEOUT). */
const POST_MS = 10_000;

/** The receiver of spans. */
export interface Collector {
  /** Base address; `/v1/traces` follows. */
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Attributes of the sender, such as `service.name`. */
  readonly resource: Attributes;
  readonly post: typeof fetch;
  /** Called once when the collector begins to refuse or to be silent. */
  readonly onLost: (why: string) => void;
}

/**
 * Sends ended spans to a collector by OTLP/HTTP in JSON. Spans are dropped, never retried, when the collector is away or
 * slow: a trace is worth less than a request. The SDK of OpenTelemetry is not used: its batches and its propagation rest
 * on timers and stores of a long-lived process, which an isolate of Workers is not.
 */
export class SpanExporter {
  readonly #collector: Collector;
  #spans: EndedSpan[] = [];
  #sending = false;
  #isAway = false;

  constructor(collector: Collector) {
    this.#collector = collector;
  }

  add(span: EndedSpan): void {
    if (this.#spans.length < SPANS_MAX) this.#spans.push(span);
  }

  get size(): number {
    return this.#spans.length;
  }

  /** Sends what has been added so far, unless another call is doing so. Never rejects. */
  async flush(): Promise<void> {
    if (this.#sending) return;
    this.#sending = true;
    for (let left = Math.ceil(this.#spans.length / BATCH_SPANS_MAX); left > 0; left -= 1) {
      const why = await this.#post(this.#spans.splice(0, BATCH_SPANS_MAX));
      if (why !== undefined && !this.#isAway) this.#collector.onLost(why);
      this.#isAway = why !== undefined;
      if (this.#isAway) break;
    }
    this.#sending = false;
  }

  async #post(spans: readonly EndedSpan[]): Promise<string | undefined> {
    const { endpoint, headers, resource, post } = this.#collector;
    try {
      const response = await post(`${endpoint.replace(/\/$/, '')}/v1/traces`, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify(encodeSpans(spans, resource)),
        redirect: 'manual',
        signal: AbortSignal.timeout(POST_MS),
      });
      await response.body?.cancel();
      return response.ok ? undefined : `status ${response.status}`;
    } catch (error) {
      return error instanceof Error ? error.name : 'unknown';
    }
  }
}

/** Returns spans as an `ExportTraceServiceRequest` in the JSON of OTLP 1.x. */
export function encodeSpans(spans: readonly EndedSpan[], resource: Attributes) {
  return {
    resourceSpans: [
      {
        resource: { attributes: encodeAttributes(resource) },
        scopeSpans: [{ scope: { name: 'auricle' }, spans: spans.map(encodeSpan) }],
      },
    ],
  };
}

const encodeSpan = ({ traceId, spanId, parentId, name, kind, began, ended, attributes, failure }: EndedSpan) => ({
  traceId,
  spanId,
  ...(parentId !== undefined && { parentSpanId: parentId }),
  name,
  kind: spanKinds[kind],
  startTimeUnixNano: nanoseconds(began),
  endTimeUnixNano: nanoseconds(ended),
  attributes: encodeAttributes(attributes),
  status: failure === undefined ? {} : { code: 2, message: failure },
});

/** Whole milliseconds: clocks of Workers are no finer. */
const nanoseconds = (ms: number): string => `${Math.round(ms)}000000`;

function encodeAttributes(attributes: Attributes) {
  return Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined ? [] : [{ key, value: encodeValue(value) }],
  );
}

const encodeValue = (value: string | number | boolean) =>
  typeof value === 'string'
    ? { stringValue: value }
    : typeof value === 'boolean'
      ? { boolValue: value }
      : { doubleValue: value };
