// Sends a file to storage in blocks (Azure Blob Storage: Put Block, Put Block List), given its address.

/** Prefix of block names where all attempts send the same bytes. */
const PREFIX = 'block-';

/** Prefix for blocks of one attempt: a late block of another attempt, in another envelope, replaces none of them. */
export const attemptPrefix = (): string => crypto.randomUUID().replaceAll('-', '').slice(-PREFIX.length);

/** Name of a block; all are of one length, as the store demands. */
const blockId = (block: number, prefix: string): string => btoa(`${prefix}${String(block).padStart(6, '0')}`);

export const blockQuery = (block: number, prefix = PREFIX): string =>
  `comp=block&blockid=${encodeURIComponent(blockId(block, prefix))}`;
export const blockListQuery = 'comp=blocklist';

/** Body of the request that makes one file of the first `count` blocks, in the order of their numbers. */
export function blockList(count: number, prefix = PREFIX): string {
  const ids = Array.from({ length: count }, (_, block) => `<Latest>${blockId(block, prefix)}</Latest>`);
  return `<?xml version="1.0" encoding="utf-8"?><BlockList>${ids.join('')}</BlockList>`;
}

/**
 * Headers of a file, which is sent once. A retry after a lost answer must not replace a file that was taken
 * meanwhile, which would then be refused as changed.
 */
export const fileHeaders: Readonly<Record<string, string>> = { 'x-ms-blob-type': 'BlockBlob', 'if-none-match': '*' };

const ofFile = new Set(['x-ms-blob-type', 'if-none-match']);

/** Returns the headers of one block: a grant's headers apply to a file that is sent at once. */
export function blockHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !ofFile.has(name.toLowerCase())));
}

/** Returns the headers of the request that commits the blocks. */
export const listHeaders = (headers: Readonly<Record<string, string>>): Record<string, string> => ({
  ...blockHeaders(headers),
  'if-none-match': '*',
});

/** Reports whether a status answers `listHeaders` because an earlier attempt stored the file. */
const isThere = (status: number): boolean => status === 409 || status === 412;

/** Reports whether a store's status is temporary, so that a retry may succeed. */
const isRetryable = (status: number): boolean => status >= 500 || status === 408 || status === 429;

/** Why the store did not take a PUT, and whether a retry may succeed. */
export interface PutFailure {
  readonly detail: string;
  readonly retryable: boolean;
}

/** Reads the answer to one PUT: `undefined` when the store has the bytes. `query` tells a commit from a block. */
export async function putFailure(sending: Promise<Response>, query?: string): Promise<PutFailure | undefined> {
  try {
    const response = await sending;
    await response.body?.cancel();
    const { ok, status } = response;
    if (ok || (query === blockListQuery && isThere(status))) return undefined;
    return { detail: `the store answered ${status}`, retryable: isRetryable(status) };
  } catch {
    return { detail: 'the store cannot be reached', retryable: true };
  }
}
