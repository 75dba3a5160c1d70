// How a file goes to storage in blocks (Azure Blob Storage: Put Block, Put Block List), for whoever has the address.

/** Name of a block; all are of one length, as the store demands. */
export const blockId = (block: number): string => btoa(`block-${String(block).padStart(6, '0')}`);

export const blockQuery = (block: number): string => `comp=block&blockid=${encodeURIComponent(blockId(block))}`;
export const blockListQuery = 'comp=blocklist';

/** Body of the request that makes one file of the first `count` blocks, in the order of their numbers. */
export function blockList(count: number): string {
  const ids = Array.from({ length: count }, (_, block) => `<Latest>${blockId(block)}</Latest>`);
  return `<?xml version="1.0" encoding="utf-8"?><BlockList>${ids.join('')}</BlockList>`;
}

/** Headers of a grant are for a file that is sent at once; the type of the blob must not be said with blocks. */
export function blockHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => name.toLowerCase() !== 'x-ms-blob-type'));
}

/** Whether a store that answered so may answer otherwise soon. */
export const mayPass = (status: number): boolean => status >= 500 || status === 408 || status === 429;
