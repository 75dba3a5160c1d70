// Blob trigger: delivers every version (ETag) of every blob that fits the path, at least once. Each poll
// lists the changes since the last one. A cursor in the storage account names the change up to which all
// blobs are done, so that a restart continues there. After too many failures the blob's name goes to the
// queue `webjobs-blobtrigger-poison`.
//
// The storage emulator sends no events, so both sources of the platform poll the container's changes here.
// The difference for functions remains: an event (`source: 'EventGrid'`) may be lost or duplicated.
import type { BlobItem, ContainerClient } from '@azure/storage-blob';
import { CHANGED_AFTER } from '../changed-after.ts';
import { type BlobEvent, describe, type HostContext, poll } from './context.ts';
import { invoke, json, newRequest, text } from './invoke.ts';
import { writeOutputs } from './outputs.ts';
import { blobPattern, fillSettings } from './patterns.ts';
import { bury } from './queue.ts';
import type { Binding, RegisteredFunction, Trigger, TypedData } from './registry.ts';

const HOSTS = 'azure-webjobs-hosts';
const POISON = 'webjobs-blobtrigger-poison';

type Found = { item: BlobItem; etag: string; names: Record<string, string> };

export async function listenToBlobs(context: HostContext, trigger: Trigger): Promise<void> {
  const { target, binding } = trigger;
  const { maxDegreeOfParallelism, poisonBlobThreshold } = context.hostJson.extensions.blobs;
  const pattern = blobPattern(fillSettings(binding.path ?? '', context.settings));
  const account = context.accounts.blobs(binding.connection);
  const container = account.getContainerClient(pattern.container);
  const hosts = context.accounts.blobs().getContainerClient(HOSTS);
  await Promise.all([container.createIfNotExists(), hosts.createIfNotExists()]);
  const cursor = openCursor(hosts, `blobtriggers/${context.hostId}/${target.metadata.name}/${pattern.container}`);
  let marker = await cursor.read();
  /** Newest version of each unfinished blob, by name. */
  const open = new Map<string, Found>();
  const failures = new Map<string, number>();

  const deliver = async (found: Found): Promise<void> => {
    const times = binding.source === 'EventGrid' ? context.deliveries(eventOf(target, container, found)) : 1;
    const attempts = Array.from({ length: times }, () => attempt(context, trigger, container, found));
    await Promise.all(attempts);
  };
  const work = async (found: Found): Promise<void> => {
    const { name } = found.item;
    try {
      await deliver(found);
    } catch (error) {
      const count = (failures.get(name) ?? 0) + 1;
      failures.set(name, count);
      context.log('error', `${target.metadata.name} failed (try ${count}): ${describe(error)}`);
      if (count < poisonBlobThreshold) return;
      const message = poisonMessage(target, pattern.container, found);
      const queue = context.accounts.queues(binding.connection).getQueueClient(POISON);
      await bury(queue, Buffer.from(JSON.stringify(message)).toString('base64'));
    }
    failures.delete(name);
    open.delete(name);
  };

  void poll(context, target.metadata.name, async () => {
    const { items, next } = await listChanges(container, marker);
    for (const item of items) {
      const names = pattern.match(item.name);
      if (names) open.set(item.name, { item, etag: item.properties.etag, names });
    }
    marker = next;
    const found = open.size > 0;
    const todo = [...open.values()].values();
    const walk = async () => {
      for (const one of todo) if (!context.stopping.aborted) await work(one);
    };
    await Promise.all(Array.from({ length: maxDegreeOfParallelism }, walk));
    // The cursor is written last: a crash before this line delivers again.
    if (open.size === 0) await cursor.write(marker);
    return found || items.length > 0;
  });
}

/** Returns the blobs that changed after the marker, oldest change first, and the marker of the last one. */
async function listChanges(container: ContainerClient, marker: string): Promise<{ items: BlobItem[]; next: string }> {
  const pages = container.listBlobsFlat({ includeMetadata: true }).byPage({ continuationToken: marker });
  const { value } = await pages.next();
  return { items: value?.segment.blobItems ?? [], next: value?.continuationToken || marker };
}

/** Opens a cursor: a marker in the metadata of an empty blob. */
function openCursor(container: ContainerClient, name: string) {
  const blob = container.getBlockBlobClient(name);
  let stored: string | undefined;
  return {
    async read(): Promise<string> {
      const found = await blob.getProperties().catch((error: { statusCode?: number }) => {
        if (error.statusCode === 404) return undefined;
        throw error;
      });
      stored = found?.metadata?.after;
      return stored ?? `${CHANGED_AFTER}0`;
    },
    async write(marker: string): Promise<void> {
      if (marker === stored) return;
      await blob.upload('', 0, { metadata: { after: marker } });
      stored = marker;
    },
  };
}

async function attempt(
  context: HostContext,
  { target, triggerName, binding }: Trigger,
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
  const response = await invoke(target, newRequest(target, triggerName, data, { metadata }));
  await writeOutputs(context, target, response, names);
}

/** Builds a deferred binding: the location of the blob, without its bytes. */
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
