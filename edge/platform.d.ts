// The used part of the Workers runtime: the published types redefine half of the DOM library, which the rest
// of the repository is compiled with.
declare module 'cloudflare:workers' {
  export abstract class DurableObject<Env = unknown> {
    protected readonly ctx: DurableObjectState;
    protected readonly env: Env;
    constructor(ctx: DurableObjectState, env: Env);
  }
}

interface DurableObjectState {
  readonly id: { readonly name?: string };
  readonly storage: DurableObjectStorage;
  waitUntil(work: Promise<unknown>): void;
  /** Ends the object and breaks its sockets. Later requests start another instance. */
  abort(reason: string): void;
}

interface DurableObjectStorage {
  readonly sql: SqlStorage;
  /** Commits all statements of `work` or none. `work` must not be async. */
  transactionSync<T>(work: () => T): T;
  /**
   * Calls the object's `alarm` at that time, ms since 1970, until it does not throw; the last call of
   * `setAlarm` counts.
   */
  setAlarm(at: number): Promise<void>;
}

interface SqlStorage {
  exec<Row extends Record<string, SqlValue>>(query: string, ...bindings: SqlValue[]): SqlCursor<Row>;
}

type SqlValue = string | number | null | ArrayBuffer;

interface SqlCursor<Row> extends Iterable<Row> {
  toArray(): Row[];
  one(): Row;
}

/** A namespace of Durable Objects; `Methods` is what their class offers over RPC. */
interface ObjectNamespace<Methods> {
  getByName(name: string): ObjectStub<Methods>;
}

/** RPC makes every method asynchronous. */
type ObjectStub<Methods> = {
  [Name in keyof Methods]: Methods[Name] extends (...given: infer Given) => infer Answer
    ? (...given: Given) => Promise<Awaited<Answer>>
    : never;
} & { fetch(request: Request): Promise<Response> };

interface WorkerContext {
  waitUntil(work: Promise<unknown>): void;
}

declare var WebSocketPair: new () => { 0: RuntimeSocket; 1: RuntimeSocket };

interface RuntimeSocket {
  /** `blob` unless set before `accept`. */
  binaryType: 'blob' | 'arraybuffer';
  accept(): void;
  /** Never says how much was sent already: this runtime has no `bufferedAmount`. */
  send(message: string | ArrayBufferView): void;
  close(code: number, reason: string): void;
  addEventListener(type: 'message', listener: (event: { data: string | ArrayBuffer }) => void): void;
  addEventListener(type: 'close', listener: (event: { code: number; reason: string }) => void): void;
  addEventListener(type: 'error', listener: () => void): void;
}

interface ResponseInit {
  /** `manual`: the body already is as `content-encoding` says. */
  encodeBody?: 'automatic' | 'manual';
  webSocket?: RuntimeSocket | null;
}

interface Response {
  /** Socket of an accepted upgrade. */
  readonly webSocket?: RuntimeSocket | null;
}

/** A transform with an output of known length, so that the answer carries `content-length`. */
declare var FixedLengthStream: new (
  length: number,
) => {
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable: WritableStream<Uint8Array>;
};

interface Request {
  /** Cloudflare's facts about the caller; absent without Cloudflare in front. */
  readonly cf?: {
    /** `accept-encoding` as the caller sent it. */
    readonly clientAcceptEncoding?: string;
  };
}
