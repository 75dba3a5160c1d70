// Types that the test runner adds to the Workers runtime, as far as these tests use them.
declare module 'cloudflare:workers' {
  export const env: import('../../edge/settings.ts').Bindings & { readonly TEST_KEYS: string };
  /** The Worker under test, called from outside. */
  export const exports: {
    readonly default: { fetch(request: Request): Promise<Response & { webSocket?: TestSocket }> };
  };
}

declare module 'cloudflare:test' {
  export function runInDurableObject<Instance, Answer>(
    stub: unknown,
    work: (instance: Instance, state: DurableObjectState) => Answer | Promise<Answer>,
  ): Promise<Answer>;
  /** Rings the alarm that is set. False when none is. */
  export function runDurableObjectAlarm(stub: unknown): Promise<boolean>;
  /** Deletes the data of every binding. */
  export function reset(): Promise<void>;
  export function evictDurableObject(stub: unknown): Promise<void>;
  export function createExecutionContext(): WorkerContext;
  export function waitOnExecutionContext(context: WorkerContext): Promise<void>;
}

interface TestSocket {
  accept(): void;
  send(message: string): void;
  close(): void;
  addEventListener(type: 'message', listener: (event: { data: unknown }) => void): void;
  addEventListener(type: 'close', listener: (event: { code: number; reason: string }) => void): void;
}
