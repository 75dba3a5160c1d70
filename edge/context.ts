import type { Quota } from '../shared/tenant/quota.ts';
import type { Recorder } from './audit/record.ts';
import type { Surroundings } from './clock.ts';
import type { Bindings, Settings } from './settings.ts';

/** Context of a route, passed with the request. */
export interface RequestContext {
  /** Also in the header `x-request-id` and in every audit event of the request. */
  readonly id: string;
  readonly env: Bindings;
  readonly settings: Settings;
  readonly surroundings: Surroundings;
  readonly recorder: Recorder;
  /** Reads and discards the rest of the body; the reader of the body sets it. */
  discardBody: (() => Promise<void>) | undefined;
  /** Rest of the caller's allowance after this request; response headers carry it. */
  quota?: Quota | undefined;
  /** The answer was made with the headers that all answers have, since to ask the runtime for them costs. */
  dressed?: boolean;
  /** Keeps the isolate at work after the answer has left. */
  readonly waitUntil: (work: Promise<unknown>) => void;
  /** Ends the request and its sockets without a close frame; absent in a Durable Object. */
  readonly abort?: (reason: string) => void;
}
