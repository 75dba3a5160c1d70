// Registrations of the functions library with the host. The library reaches it through `stand-in.ts`, once
// per process, as in the cloud: one worker process runs one app.

/** A value of the library: exactly one member is set (the protobuf `TypedData` of the Functions protocol). */
export type TypedData = {
  string?: string | null;
  json?: string | null;
  bytes?: Uint8Array | null;
  int?: number | null;
  double?: number | null;
  http?: HttpData | null;
  modelBindingData?: { version: string; source: string; contentType: string; content: Uint8Array };
};

export type HttpData = {
  method?: string;
  url?: string;
  headers?: Record<string, string>;
  nullableHeaders?: Record<string, { value: string }>;
  query?: Record<string, string>;
  params?: Record<string, string>;
  nullableParams?: Record<string, { value: string }>;
  body?: TypedData | undefined;
  statusCode?: string;
  cookies?: { name: string; value: string }[];
};

export type Binding = {
  type: string;
  direction: 'in' | 'out';
  name?: string;
  path?: string;
  /** Source of a blob trigger: `EventGrid`, or a scan. */
  source?: string;
  properties?: { supportsDeferredBinding?: string };
  queueName?: string;
  connection?: string;
  route?: string;
  methods?: string[];
  authLevel?: string;
  schedule?: string;
  runOnStartup?: boolean;
};

export type FunctionMetadata = { name: string; functionId: string; bindings: Record<string, Binding> };
export type RegisteredFunction = { metadata: FunctionMetadata; callback: unknown };

/** An input binding that starts a function, by its name there. */
export type Trigger = { target: RegisteredFunction; triggerName: string; binding: Binding };

export type InvocationRequest = {
  invocationId: string;
  functionId: string;
  inputData: { name: string; data: TypedData }[];
  triggerMetadata: Record<string, TypedData>;
  traceContext: { traceParent: string; traceState: string; attributes: Record<string, string> };
};

export type InvocationResponse = {
  outputData?: { name: string; data: TypedData }[];
  returnValue?: TypedData | null;
};

/** The part of the library that turns protocol messages into calls of the app; all conversions are its own. */
export type ProgrammingModel = {
  getInvocationModel(context: unknown): Promise<InvocationModel> | InvocationModel;
  getCapabilities(offered: Record<string, string>): Promise<Record<string, string>> | Record<string, string>;
};

export type InvocationModel = {
  getArguments(): Promise<{ context: unknown; inputs: unknown[] }>;
  invokeFunction(context: unknown, inputs: unknown[], callback: unknown): Promise<unknown>;
  getResponse(context: unknown, result: unknown): Promise<InvocationResponse>;
};

export type LogLevel = 'trace' | 'debug' | 'information' | 'warning' | 'error' | 'critical' | 'none';
export type HostLog = (level: LogLevel, text: string) => void;
export type HookName = 'preInvocation' | 'postInvocation' | 'appStart' | 'appTerminate';
export type Hook = (context: Record<string, unknown>) => unknown;

export const registry = {
  functions: new Map<string, RegisteredFunction>(),
  hooks: { preInvocation: [], postInvocation: [], appStart: [], appTerminate: [] } as Record<HookName, Hook[]>,
  model: undefined as ProgrammingModel | undefined,
  /** Set once the app has loaded: registering later fails, as in the cloud. */
  locked: false,
  appHookData: {} as Record<string, unknown>,
  appLevelHookData: {} as Record<string, unknown>,
  log: ((level, text) => console.error(`${level}: ${text}`)) as HostLog,
};

export async function runHooks(name: HookName, context: Record<string, unknown>): Promise<void> {
  for (const hook of registry.hooks[name]) await hook(context);
}

export function modelOf(): ProgrammingModel {
  if (!registry.model) throw new Error('the app does not use the functions library: no programming model was set');
  return registry.model;
}
