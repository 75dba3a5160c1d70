// Files of a bundle, wherever they are: a folder, an archive, what somebody dropped on a page.

export interface BundleFiles {
  /** Paths below the bundle, with slashes. */
  list(): Promise<readonly string[]>;
  read(path: string): Promise<Uint8Array | undefined>;
}

const hex = (bytes: Uint8Array): string => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');

export const digestOf = async (bytes: Uint8Array): Promise<string> =>
  hex(new Uint8Array(await crypto.subtle.digest('SHA-256', bytes as BufferSource)));
