/** Trace context of W3C (Trace Context, Level 1, §3.2): `00-TRACE-PARENT-FLAGS`. */
export interface TraceContext {
  /** 32 hex digits. */
  readonly traceId: string;
  /** Span of the sender, 16 hex digits. */
  readonly spanId: string;
  readonly isSampled: boolean;
}

/** Later versions may append fields (§4.3), so only version 00 must end with the flags. */
const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
/** Far over every known version. */
const TRACEPARENT_CHARACTERS = 128;

/** Reads a header `traceparent`; `undefined` for one that W3C tells to ignore. */
export function readTraceparent(header: string | null | undefined): TraceContext | undefined {
  const match = header && header.length <= TRACEPARENT_CHARACTERS ? TRACEPARENT.exec(header) : null;
  if (!match) return undefined;
  const [, version, traceId = '', spanId = '', flags = '', rest] = match;
  if (version === '00' && rest !== undefined) return undefined;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

export const writeTraceparent = ({ traceId, spanId, isSampled }: TraceContext): string =>
  `00-${traceId}-${spanId}-0${isSampled ? 1 : 0}`;
