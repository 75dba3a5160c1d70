// Derives the tables of a part again, line by line, and compares digests: memory holds a few lines at a time.
import { toHex } from '../../hex.ts';
import type { BundlePart, FileDigest } from '../bundle/manifest.ts';
import { type DerivedFormat, derivedFormats, isFormat } from '../derived/formats.ts';
import { type Cell, cellsOf, type DerivedEntry } from '../derived/row.ts';
import type { Sha256 } from '../sha256.ts';
import type { Hashing } from './hashing.ts';

/** Characters that are hashed at a time. */
const BUFFERED_CHARACTERS = 65_536;
const encoder = new TextEncoder();

/** The digest of one derived file. */
class DerivedDigest {
  readonly path: string;
  readonly #line: (cells: readonly Cell[]) => string;
  readonly #hash: Sha256;
  #text: string;
  #bytes = 0;

  constructor(path: string, format: DerivedFormat, hashing: Hashing) {
    this.path = path;
    this.#line = derivedFormats[format].line;
    this.#hash = hashing.openSha256();
    this.#text = derivedFormats[format].head;
  }

  add(cells: readonly Cell[]): void {
    this.#text += this.#line(cells);
    if (this.#text.length >= BUFFERED_CHARACTERS) this.#flush();
  }

  #flush(): void {
    const bytes = encoder.encode(this.#text);
    this.#hash.update(bytes);
    this.#bytes += bytes.length;
    this.#text = '';
  }

  equals({ bytes, sha256 }: FileDigest): boolean {
    this.#flush();
    return this.#bytes === bytes && toHex(this.#hash.digest()) === sha256;
  }
}

export class DerivedAgain {
  readonly #files: readonly DerivedDigest[];
  readonly #origin: string;
  /** Formats that this version cannot derive: their files are compared with the manifest only. */
  readonly unknown: readonly string[];

  constructor({ derived }: BundlePart, origin: string, hashing: Hashing) {
    this.#origin = origin;
    this.#files = Object.entries(derived).flatMap(([format, path]) =>
      isFormat(format) ? [new DerivedDigest(path, format, hashing)] : [],
    );
    this.unknown = Object.keys(derived).filter((format) => !isFormat(format));
  }

  get isNeeded(): boolean {
    return this.#files.length > 0;
  }

  add(entry: DerivedEntry): void {
    const cells = cellsOf(entry, this.#origin);
    for (const file of this.#files) file.add(cells);
  }

  /** Returns the paths of files that match the manifest but not the entries. */
  async end(check: (path: string) => Promise<FileDigest | undefined>): Promise<string[]> {
    const others: string[] = [];
    for (const file of this.#files) {
      const found = await check(file.path);
      if (found && !file.equals(found)) others.push(file.path);
    }
    return others;
  }
}
