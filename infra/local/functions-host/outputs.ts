// Output bindings: return values of a function go to their queue or blob once the function is done.
import { randomUUID } from 'node:crypto';
import type { HostContext } from './context.ts';
import { bytesOf } from './invoke.ts';
import { fillPath, fillSettings } from './patterns.ts';
import type { Binding, InvocationResponse, RegisteredFunction, TypedData } from './registry.ts';

export async function writeOutputs(
  context: HostContext,
  target: RegisteredFunction,
  response: InvocationResponse,
  known: Record<string, string>,
): Promise<void> {
  const outputs = [...(response.outputData ?? [])];
  if (response.returnValue) outputs.push({ name: '$return', data: response.returnValue });
  for (const { name, data } of outputs) {
    const binding = target.metadata.bindings[name];
    if (!binding) continue;
    const write = writers[binding.type.toLowerCase()];
    if (!write) throw new Error(`output binding "${binding.type}" of ${target.metadata.name} is not emulated`);
    await write(context, binding, data, known);
  }
}

type Write = (context: HostContext, binding: Binding, data: TypedData, known: Record<string, string>) => Promise<void>;

const writers: Record<string, Write> = {
  // The answer of an HTTP function is its response.
  http: async () => {},
  queue: async (context, binding, data, known) => {
    const name = fill(context, binding.queueName, known);
    const queue = context.accounts.queues(binding.connection).getQueueClient(name);
    await queue.createIfNotExists();
    for (const message of messagesOf(data)) await queue.sendMessage(message.toString('base64'));
  },
  blob: async (context, binding, data, known) => {
    const [container = '', ...rest] = fill(context, binding.path, known).split('/');
    const client = context.accounts.blobs(binding.connection).getContainerClient(container);
    await client.createIfNotExists();
    await client.getBlockBlobClient(rest.join('/')).uploadData(bytesOf(data) ?? Buffer.alloc(0));
  },
};

function fill(context: HostContext, template: string | undefined, known: Record<string, string>): string {
  return fillPath(fillSettings(template ?? '', context.settings), known, randomUUID, () => new Date());
}

/** An array becomes one message per element, as in the cloud. */
function messagesOf(data: TypedData): Buffer[] {
  const value: unknown = data.json == null ? undefined : JSON.parse(data.json);
  if (!Array.isArray(value)) return [bytesOf(data) ?? Buffer.alloc(0)];
  return value.map((one) => Buffer.from(typeof one === 'string' ? one : JSON.stringify(one)));
}
