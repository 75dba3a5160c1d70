import { SpanExporter } from '../../shared/trace/exporter.ts';
import { type Span, type SpanStart, startSpan, type Tracer } from '../../shared/trace/span.ts';
import type { Runtime } from '../clock.ts';
import type { Bindings, Settings } from '../settings.ts';
import { Meter, type RequestFacts } from './meter.ts';

/** Interval of the reports of an isolate: as often as it reads a Roster. */
const REPORT_MS = 1_000;
/** Time after which a report that never left counts as lost with its request. */
const REPORT_LOST_MS = 5_000;

/** Counts that this isolate has not reported yet. Plain data, lost with it. */
const meter = new Meter();
const exporters = new WeakMap<Settings, SpanExporter>();
let reportedAt = 0;
let dueAt: number | undefined;

export interface TelemetryContext {
  readonly settings: Settings;
  readonly roster: Bindings['ROSTER'];
  readonly runtime: Runtime;
  readonly waitUntil: (work: Promise<unknown>) => void;
}

/** Metrics and traces of one request. They leave behind its answer; no failure reaches it. */
export class Telemetry {
  readonly #context: TelemetryContext;

  constructor(context: TelemetryContext) {
    this.#context = context;
  }

  count(facts: RequestFacts): void {
    meter.count(facts);
    this.#reportSoon();
  }

  /** Returns a span below the caller's, or one that begins a trace, if the settings name a collector. */
  startSpan({ newTrace, ...start }: SpanStart): Span | undefined {
    const { runtime, settings } = this.#context;
    const begins = settings.traces !== undefined && runtime.random() < settings.traces.ratio;
    return startSpan({ ...start, ...(begins && { newTrace }) }, this.#tracer());
  }

  #tracer(): Tracer | undefined {
    const exporter = exporterOf(this.#context.settings);
    if (!exporter) return undefined;
    const record: Tracer['record'] = (span) => {
      exporter.add(span);
      this.#reportSoon();
    };
    return { now: this.#context.runtime.now, record };
  }

  /** Reports at once, or a second after the last report together with all that comes until then. */
  #reportSoon(): void {
    const now = this.#context.runtime.now();
    if (dueAt !== undefined && now < dueAt + REPORT_LOST_MS) return;
    dueAt = Math.max(now, reportedAt + REPORT_MS);
    this.#context.waitUntil(this.#report(dueAt - now));
  }

  async #report(ms: number): Promise<void> {
    const { roster, runtime, settings } = this.#context;
    if (ms > 0) await runtime.after(ms).rings;
    reportedAt = runtime.now();
    dueAt = undefined;
    const reports = meter.take().map(async ([zone, report]) => roster.getByName(zone).addMetrics(report));
    await Promise.allSettled([...reports, exporterOf(settings)?.flush()]);
  }
}

/** Returns the exporter of this isolate; `undefined` where the settings name no collector. */
function exporterOf(settings: Settings): SpanExporter | undefined {
  const { traces } = settings;
  if (!traces) return undefined;
  const known = exporters.get(settings);
  if (known) return known;
  const exporter = new SpanExporter({
    ...traces,
    resource: { 'service.name': 'auricle-edge' },
    post: (url, init) => fetch(url, init),
    onLost: (why) => console.warn(JSON.stringify({ event: 'spans-lost', why })),
  });
  exporters.set(settings, exporter);
  return exporter;
}
