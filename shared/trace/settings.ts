import { z } from 'zod';

const headerList = z
  .string()
  .regex(/^[^=,\s]+=[^,]*(?:,[^=,]+=[^,]*)*$/, 'must be a list as name=value,name=value')
  .transform((text) =>
    Object.fromEntries(
      text.split(',').map((pair) => {
        const at = pair.indexOf('=');
        return [pair.slice(0, at).trim(), decodeURIComponent(pair.slice(at + 1).trim())];
      }),
    ),
  );

/** Settings of traces, with the names and meanings of OpenTelemetry's specification. Without an endpoint there are none. */
export const traceSettings = {
  /** Base address of a collector that takes OTLP/HTTP. */
  OTEL_EXPORTER_OTLP_ENDPOINT: z.url({ protocol: /^https?$/ }).optional(),
  /** Headers for it, percent-encoded. A secret. */
  OTEL_EXPORTER_OTLP_HEADERS: headerList.optional(),
} as const;
