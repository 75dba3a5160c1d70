import { SpanExporter } from '../../../../shared/trace/exporter.ts';
import type { Tracer } from '../../../../shared/trace/span.ts';
import type { Log } from './log.ts';

/** Longest time a span waits for others: a trace is looked at later than that. */
const EXPORT_MS = 1_000;

export interface TraceSettings {
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, string>>;
}

export interface Traces extends Tracer {
  /** Sends the last spans. Never rejects. */
  close(): Promise<void>;
}

/** Returns the tracer of an agent; `undefined` where the settings name no collector. */
export function openTraces(
  traces: TraceSettings | undefined,
  { agent, pool }: { readonly agent: string; readonly pool: string },
  { now, log }: { readonly now: () => number; readonly log: Log },
): Traces | undefined {
  if (!traces) return undefined;
  const exporter = new SpanExporter({
    ...traces,
    resource: { 'service.name': 'auricle-agent', 'service.instance.id': agent, 'auricle.pool': pool },
    post: (url, init) => fetch(url, init),
    onLost: (reason) => log('spans-lost', { reason }),
  });
  let timer: NodeJS.Timeout | undefined;
  async function flush(): Promise<void> {
    await exporter.flush();
    timer = undefined;
    if (exporter.size > 0) schedule();
  }
  function schedule(): void {
    timer ??= setTimeout(() => void flush(), EXPORT_MS).unref();
  }
  return {
    now,
    record(span) {
      exporter.add(span);
      schedule();
    },
    close() {
      clearTimeout(timer);
      return exporter.flush();
    },
  };
}
