// Blob trigger: every version (ETag) of every blob that fits the path, at least once. A receipt per version says that a
// blob is done; it is kept in the storage account, so that a restart does not begin again. After too many failures the
// blob's name goes to the queue `webjobs-blobtrigger-poison`.
import type { BlobItem, ContainerClient } from '@azure/storage-blob';
import { describe, type HostContext, poll } from './context.ts';
import { invoke, json, newRequest, text } from './invoke.ts';
import { writeOutputs } from './outputs.ts';
import { blobPattern, fillSettings } from './patterns.ts';
import { bury } from './queue.ts';
import type { Binding, RegisteredFunction, TypedData } from './registry.ts';

const RECEIPTS = 'azure-webjobs-hosts';
const POISON = 'webjobs-blobtrigger-poison';

type Found = { item: BlobItem; etag: string; names: Record<string, string> };

export async function listenToBlobs(
  context: HostContext,
  target: RegisteredFunction,
  triggerName: string,
  binding: Binding,
): Promise<void> {
  const { maxDegreeOfParallelism, poisonBlobThreshold } = context.hostJson.extensions.blobs;
  const pattern = blobPattern(fillSettings(binding.path ?? '', context.settings));
  const account = context.accounts.blobs(binding.connection);
  const container = account.getContainerClient(pattern.container);
  const receipts = context.accounts.blobs().getContainerClient(RECEIPTS);
  await Promise.all([container.createIfNotExists(), receipts.createIfNotExists()]);
  const done = new Map<string, string>();
  const failures = new Map<string, number>();

  const work = async (found: Found): Promise<void> => {
    const { name } = found.item;
    const receipt = receipts.getBlockBlobClient(receiptName(context.hostId, target, pattern.container, found));
    if (!(await receipt.exists())) {
      try {
        await attempt(context, target, triggerName, container, found);
        failures.delete(name);
      } catch (error) {
        const count = (failures.get(name) ?? 0) + 1;
        failures.set(name, count);
        context.log('error', `${target.metadata.name} failed (try ${count}): ${describe(error)}`);
        if (count < poisonBlobThreshold) return;
        failures.delete(name);
        const message = poisonMessage(target, pattern.container, found);
        const queue = context.accounts.queues(binding.connection).getQueueClient(POISON);
        await bury(queue, Buffer.from(JSON.stringify(message)).toString('base64'));
      }
      // Written last: a crash before this line means the blob is delivered again.
      await receipt.upload('', 0);
    }
    done.set(name, found.etag);
  };

  void poll(context, target.metadata.name, async () => {
    const todo: Found[] = [];
    for await (const item of container.listBlobsFlat({ includeMetadata: true })) {
      const names = pattern.match(item.name);
      const etag = item.properties.etag;
      if (names && done.get(item.name) !== etag) todo.push({ item, etag, names });
    }
    for (let start = 0; start < todo.length; start += maxDegreeOfParallelism) {
      if (context.stopping.aborted) break;
      await Promise.all(todo.slice(start, start + maxDegreeOfParallelism).map(work));
    }
    return todo.length > 0;
  });
}

async function attempt(
  context: HostContext,
  target: RegisteredFunction,
  triggerName: string,
  container: ContainerClient,
  { item, etag, names }: Found,
): Promise<void> {
  const client = container.getBlobClient(item.name);
  const bytes = await client.downloadToBuffer(0, undefined, { conditions: { ifMatch: etag } });
  const metadata: Record<string, TypedData> = {
    BlobTrigger: text(`${container.containerName}/${item.name}`),
    Uri: text(client.url),
    Properties: json(item.properties),
    Metadata: json(item.metadata ?? {}),
  };
  for (const [name, value] of Object.entries(names)) metadata[name] = text(value);
  const response = await invoke(target, newRequest(target, triggerName, { bytes }, metadata));
  await writeOutputs(context, target, response, names);
}

function receiptName(hostId: string, target: RegisteredFunction, container: string, { item, etag }: Found): string {
  return `blobreceipts/${hostId}/${target.metadata.name}/${etag.replaceAll('"', '')}/${container}/${item.name}`;
}

function poisonMessage(target: RegisteredFunction, container: string, { item, etag }: Found) {
  return {
    Type: 'BlobTrigger',
    FunctionId: `Host.Functions.${target.metadata.name}`,
    BlobType: item.properties.blobType ?? 'BlockBlob',
    ContainerName: container,
    BlobName: item.name,
    ETag: etag,
  };
}
