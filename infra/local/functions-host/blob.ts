// Blob trigger: every version (ETag) of every blob that fits the path, at least once. A receipt per version says that a
// blob is done; it is kept in the storage account, so that a restart does not begin again. After too many failures the
// blob's name goes to the queue `webjobs-blobtrigger-poison`.
//
// The storage emulator tells nobody of new blobs, so both sources of the platform are a look into the container here.
// What differs for functions is kept: an event (`source: 'EventGrid'`) may be lost or come twice.
import type { BlobItem, ContainerClient } from '@azure/storage-blob';
import { type BlobEvent, describe, type HostContext, poll } from './context.ts';
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
        const times = binding.source === 'EventGrid' ? context.deliveries(eventOf(target, container, found)) : 1;
        const attempts = Array.from({ length: times }, () =>
          attempt(context, target, triggerName, binding, container, found),
        );
        await Promise.all(attempts);
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
  binding: Binding,
  container: ContainerClient,
  { item, etag, names }: Found,
): Promise<void> {
  const client = container.getBlobClient(item.name);
  const metadata: Record<string, TypedData> = {
    BlobTrigger: text(`${container.containerName}/${item.name}`),
    Uri: text(client.url),
    Properties: json(item.properties),
    Metadata: json(item.metadata ?? {}),
  };
  for (const [name, value] of Object.entries(names)) metadata[name] = text(value);
  const data =
    binding.properties?.supportsDeferredBinding === 'true'
      ? referenceTo(binding, container, item.name)
      : { bytes: await client.downloadToBuffer(0, undefined, { conditions: { ifMatch: etag } }) };
  const response = await invoke(target, newRequest(target, triggerName, data, metadata));
  await writeOutputs(context, target, response, names);
}

/** A deferred binding: where the blob is, and none of its bytes. */
function referenceTo(binding: Binding, container: ContainerClient, name: string): TypedData {
  const content = { Connection: binding.connection, ContainerName: container.containerName, BlobName: name };
  return {
    modelBindingData: {
      version: '1.0',
      source: 'AzureStorageBlobs',
      contentType: 'application/json',
      content: Buffer.from(JSON.stringify(content)),
    },
  };
}

const eventOf = (target: RegisteredFunction, container: ContainerClient, { item, etag }: Found): BlobEvent => ({
  function: target.metadata.name,
  container: container.containerName,
  name: item.name,
  etag,
});

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
