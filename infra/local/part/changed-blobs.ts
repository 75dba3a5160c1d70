// A listing of the blobs of a container by their last change, which the emulator lacks. The functions host reads it in
// place of the events of the service.
import { CHANGED_AFTER } from '../changed-after.ts';

interface Blob {
  readonly accountName: string;
  readonly containerName: string;
  readonly snapshot: string;
  readonly isCommitted: boolean;
  readonly properties: { readonly etag: string };
  /** Number and ETag of the last change of content or metadata. Numbers rise. */
  changed?: { readonly number: number; readonly etag: string };
}

/** The members of a LokiJS collection that the listing uses. */
interface Collection {
  readonly data: readonly Blob[];
  on(event: 'pre-insert' | 'pre-update', listener: (blob: Blob) => void): void;
}

/** Arguments of a listing in the order of the emulator. */
type Listing = [
  context: unknown,
  account: string,
  container: string,
  delimiter?: string,
  blob?: string,
  prefix?: string,
  most?: number,
  marker?: string,
  ...rest: unknown[],
];

export interface BlobStore {
  readonly db: { getCollection(name: string): Collection };
  init(): Promise<void>;
  listBlobs(...listing: Listing): Promise<[blobs: Blob[], prefixes: unknown[], marker: string]>;
}

/** Blobs of a page at most, as at the service. */
const PAGE = 5_000;

const numberOf = ({ changed }: Blob): number => changed?.number ?? 0;

/** Makes `listBlobs` of a store take a marker `changed-after:N`. */
export function listChanges(store: BlobStore): void {
  const init = store.init.bind(store);
  store.init = async () => {
    await init();
    const blobs = store.db.getCollection('$BLOBS_COLLECTION$');
    numberChanges(blobs);
    const listBlobs = store.listBlobs.bind(store);
    store.listBlobs = async (...listing) => {
      const [, account, container, , , , most = PAGE, marker = ''] = listing;
      if (!marker.startsWith(CHANGED_AFTER)) return listBlobs(...listing);
      const after = Number(marker.slice(CHANGED_AFTER.length));
      const page = blobs.data
        .filter((blob) => numberOf(blob) > after && blob.accountName === account && blob.containerName === container)
        .sort((one, other) => numberOf(one) - numberOf(other))
        .slice(0, most);
      const last = page.at(-1);
      return [page, [], `${CHANGED_AFTER}${last ? numberOf(last) : after}`];
    };
  };
}

/** Numbers each change of a blob, which is a new ETag, in microseconds since 1970. Changes before a restart have lower numbers. */
function numberChanges(blobs: Collection): void {
  let last = blobs.data.reduce((most, blob) => Math.max(most, numberOf(blob)), 0);
  const number = (blob: Blob) => {
    const { etag } = blob.properties;
    if (!blob.isCommitted || blob.snapshot !== '' || blob.changed?.etag === etag) return;
    last = Math.max(last + 1, Date.now() * 1_000);
    blob.changed = { number: last, etag };
  };
  for (const blob of blobs.data) number(blob);
  blobs.on('pre-insert', number);
  blobs.on('pre-update', number);
}
