/** A request as the routes see it. */
export interface EngineRequest {
  readonly model: string;
  readonly version: number | undefined;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Uint8Array;
  readonly signal: AbortSignal;
}
