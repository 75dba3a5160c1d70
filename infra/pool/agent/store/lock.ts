import { randomUUID } from 'node:crypto';
import { type Disk, isCode, unlessMissing } from './contract.ts';

/** Age at which a lock is stale. Its holder touches it with each piece of a download, at most once a second. */
const STALE_MS = 30_000;
const TOUCH_MS = 1_000;
/** Tries against other processes that take and release the lock. */
const TRIES = 3;

/** An exclusive lock among the processes of a node: a file whose age tells whether its holder lives. */
export class FileLock {
  readonly #disk: Disk;
  readonly #now: () => number;
  readonly #file: string;
  readonly #holder = randomUUID();
  #touched = 0;

  private constructor(disk: Disk, now: () => number, file: string) {
    this.#disk = disk;
    this.#now = now;
    this.#file = file;
  }

  /** Takes the lock, also over a stale one; `undefined` while another process holds it. */
  static async acquire(disk: Disk, now: () => number, file: string): Promise<FileLock | undefined> {
    const lock = new FileLock(disk, now, file);
    for (let tried = 0; tried < TRIES; tried += 1) {
      if (await lock.#create()) return lock;
      if (!(await isStale(disk, now, file))) return undefined;
      await unlessMissing(disk.unlink(file));
    }
    return undefined;
  }

  async #create(): Promise<boolean> {
    try {
      await this.#disk.writeFile(this.#file, this.#holder, { flag: 'wx', mode: 0o600 });
    } catch (error) {
      if (isCode(error, 'EEXIST')) return false;
      throw error;
    }
    await this.#touch();
    return true;
  }

  async #touch(): Promise<void> {
    this.#touched = this.#now();
    await unlessMissing(this.#disk.utimes(this.#file, this.#touched / 1_000, this.#touched / 1_000));
  }

  /** Shows that the holder lives. Returns false when another process has taken the lock over. */
  async refresh(): Promise<boolean> {
    if (this.#now() - this.#touched < TOUCH_MS) return true;
    if (!(await this.#isOwn())) return false;
    await this.#touch();
    return true;
  }

  async release(): Promise<void> {
    if (await this.#isOwn()) await unlessMissing(this.#disk.unlink(this.#file));
  }

  async #isOwn(): Promise<boolean> {
    return (await unlessMissing(this.#disk.readFile(this.#file, 'utf8'))) === this.#holder;
  }
}

/** Reports whether a lock is missing or its holder silent; a time far ahead, of a clock that stepped back, is silence. */
export async function isStale(disk: Disk, now: () => number, file: string): Promise<boolean> {
  const found = await unlessMissing(disk.stat(file));
  return found === undefined || Math.abs(now() - found.mtimeMs) > STALE_MS;
}
