// One invocation of a function, in the sequence of the official Node worker: model, arguments, hooks,
// function, hooks, response.
import { randomUUID } from 'node:crypto';
import {
  type InvocationRequest,
  type InvocationResponse,
  type LogLevel,
  modelOf,
  type RegisteredFunction,
  registry,
  runHooks,
  type TypedData,
} from './registry.ts';

export function newRequest(
  target: RegisteredFunction,
  triggerName: string,
  data: TypedData,
  { metadata = {}, traceParent = '' }: { metadata?: Record<string, TypedData>; traceParent?: string | undefined } = {},
): InvocationRequest {
  return {
    invocationId: randomUUID(),
    functionId: target.metadata.functionId,
    inputData: [{ name: triggerName, data }],
    triggerMetadata: metadata,
    traceContext: { traceParent, traceState: '', attributes: {} },
  };
}

export async function invoke(target: RegisteredFunction, request: InvocationRequest): Promise<InvocationResponse> {
  const name = target.metadata.name;
  const invocation = {
    invocationId: request.invocationId,
    request,
    metadata: target.metadata,
    state: undefined as string | undefined,
    log: (level: LogLevel, _category: string, message: string) => registry.log(level, `${name}: ${message}`),
  };
  const model = await modelOf().getInvocationModel(invocation);
  const { context, inputs } = await model.getArguments();
  const shared = { hookData: {}, appHookData: registry.appHookData, invocationContext: context };

  const before = { ...shared, functionCallback: target.callback, inputs };
  invocation.state = 'preInvocationHooks';
  await runHooks('preInvocation', before);

  const after = { ...shared, inputs: before.inputs, result: null as unknown, error: null as unknown };
  invocation.state = 'invocation';
  try {
    after.result = await model.invokeFunction(context, before.inputs, before.functionCallback);
  } catch (error) {
    after.error = error;
  }

  invocation.state = 'postInvocationHooks';
  await runHooks('postInvocation', after);
  invocation.state = undefined;
  if (after.error) throw after.error;
  return model.getResponse(context, after.result);
}

export const text = (value: string): TypedData => ({ string: value });
export const json = (value: unknown): TypedData => ({ json: JSON.stringify(value) });

export function bytesOf(data: TypedData | null | undefined): Buffer | undefined {
  if (data == null) return undefined;
  if (data.bytes != null) return Buffer.from(data.bytes);
  const spelled = data.string ?? data.json ?? data.int ?? data.double;
  return spelled == null ? undefined : Buffer.from(String(spelled));
}
