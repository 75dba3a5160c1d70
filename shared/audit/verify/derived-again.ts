// Regenerates derived files line by line and compares their digests. Buffers only a few lines.
import { toHex } from '../../hex.ts';
import type { Sha256 } from '../../sha256.ts';
import type { BundlePart, FileDigest } from '../bundle/manifest.ts';
import { type DerivedFormat, derivedFormats, isFormat } from '../derived/formats.ts';
import { type DerivedContext, type DerivedEntry, DerivedRow, type Deriving } from '../derived/row.ts';
import type { Hashing } from './hashing.ts';

/** Characters hashed at once. */
const AT_ONCE = 65_536;
const encoder = new TextEncoder();

/** The digest of one derived file. */
class Again {
  readonly path: string;
  readonly #making: Deriving;
  readonly #hash: Sha256;
  #text: string;
  #bytes = 0;

  constructor(path: string, format: DerivedFormat, context: DerivedContext, hashing: Hashing) {
    this.path = path;
    this.#making = derivedFormats[format].open(context);
    this.#hash = hashing.openSha256();
    this.#text = this.#making.head;
  }

  add(row: DerivedRow): void {
    this.#text += this.#making.add(row);
    if (this.#text.length >= AT_ONCE) this.#flush();
  }

  #flush(): void {
    this.#update(encoder.encode(this.#text));
    this.#text = '';
  }

  #update(bytes: Uint8Array): void {
    this.#hash.update(bytes);
    this.#bytes += bytes.length;
  }

  isSame({ bytes, sha256 }: FileDigest): boolean {
    this.#flush();
    for (const piece of this.#making.end()) this.#update(piece);
    return this.#bytes === bytes && toHex(this.#hash.digest()) === sha256;
  }
}

export class DerivedAgain {
  readonly #files: readonly Again[];
  readonly #context: DerivedContext;

  constructor({ derived }: BundlePart, context: DerivedContext, hashing: Hashing) {
    this.#context = context;
    this.#files = Object.entries(derived).flatMap(([format, path]) =>
      isFormat(format) ? [new Again(path, format, context, hashing)] : [],
    );
  }

  get isNeeded(): boolean {
    return this.#files.length > 0;
  }

  add(entry: DerivedEntry): void {
    const row = new DerivedRow(entry, this.#context);
    for (const file of this.#files) file.add(row);
  }

  /** Returns paths of files that match the manifest but not the entries. */
  async end(check: (path: string) => Promise<FileDigest | undefined>): Promise<string[]> {
    const others: string[] = [];
    for (const file of this.#files) {
      const found = await check(file.path);
      if (found && !file.isSame(found)) others.push(file.path);
    }
    return others;
  }
}
