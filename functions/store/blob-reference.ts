// Blob trigger inputs: the name of the blob and none of its content. By default the host would hand over all
// bytes, and a function would hold hours of audio in memory.
//
// The library turns a deferred binding (`sdkBinding: true`) into a client by a factory for its source. This
// factory returns a name.
import { createRequire } from 'node:module';
import type { ModelBindingData, ResourceFactoryResolver } from '@azure/functions-extensions-base';
import { z } from 'zod';

export interface BlobReference {
  readonly container: string;
  readonly name: string;
}

/** Content of the binding data, as sent by the host. */
const content = z.object({ ContainerName: z.string(), BlobName: z.string() });

const SOURCE = 'AzureStorageBlobs';

function readReference(data: ModelBindingData | ModelBindingData[]): BlobReference {
  const one = Array.isArray(data) ? data[0] : data;
  const parsed = content.parse(JSON.parse(new TextDecoder().decode(one?.content ?? new Uint8Array())));
  return { container: parsed.ContainerName, name: parsed.BlobName };
}

/** Registers the factory. Call it once, before the first trigger is registered. */
export function registerReferences(): void {
  // The library is CommonJS and keeps its factories in the CommonJS copy of this package.
  const load = createRequire(import.meta.url);
  const base = load('@azure/functions-extensions-base') as { ResourceFactoryResolver: typeof ResourceFactoryResolver };
  const resolver = base.ResourceFactoryResolver.getInstance();
  if (!resolver.hasResourceFactory(SOURCE)) resolver.registerResourceFactory(SOURCE, readReference);
}
