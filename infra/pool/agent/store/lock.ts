import { randomUUID } from 'node:crypto';
import { type Disk, isCode, type StoreOptions, unlessMissing } from './contract.ts';

/** Age at which a lock is stale. Spans several touches, so that a slow disk or a busy process loses no lock. */
const STALE_MS = 30_000;
const TOUCH_MS = 5_000;
/** Tries against other processes that take and release the lock. */
const TRIES = 3;

type LockOptions = Pick<StoreOptions, 'disk' | 'now' | 'every'>;

/**
 * An exclusive lock among the processes of a node: a file whose age tells whether its holder lives. The lock touches the
 * file by itself until its release, because copying, hashing or syncing gigabytes takes longer than a lock may be silent.
 */
export class FileLock {
  readonly #disk: Disk;
  readonly #now: () => number;
  readonly #file: string;
  readonly #holder = randomUUID();
  #stop = () => {};
  #isLost = false;

  private constructor({ disk, now }: LockOptions, file: string) {
    this.#disk = disk;
    this.#now = now;
    this.#file = file;
  }

  /** Reports whether another process has taken the lock over, as of the last touch. */
  get isLost(): boolean {
    return this.#isLost;
  }

  /** Takes the lock, also over a stale one; `undefined` while another process holds it. */
  static async acquire(options: LockOptions, file: string): Promise<FileLock | undefined> {
    const lock = new FileLock(options, file);
    for (let tried = 0; tried < TRIES; tried += 1) {
      if (await lock.#create()) {
        lock.#stop = options.every(TOUCH_MS, () => lock.#refresh());
        return lock;
      }
      if (!(await isStale(options, file))) return undefined;
      await unlessMissing(options.disk.unlink(file));
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
    const seconds = this.#now() / 1_000;
    await unlessMissing(this.#disk.utimes(this.#file, seconds, seconds));
  }

  async #refresh(): Promise<void> {
    try {
      if (await this.#isOwn()) await this.#touch();
      else this.#isLost = true;
    } catch {
      // The next touch tries again, long before the lock is stale.
    }
  }

  async release(): Promise<void> {
    this.#stop();
    if (await this.#isOwn()) await unlessMissing(this.#disk.unlink(this.#file));
  }

  async #isOwn(): Promise<boolean> {
    return (await unlessMissing(this.#disk.readFile(this.#file, 'utf8'))) === this.#holder;
  }
}

/** Reports whether a lock is missing or its holder silent; a time far ahead, of a clock that stepped back, is silence. */
export async function isStale({ disk, now }: Pick<LockOptions, 'disk' | 'now'>, file: string): Promise<boolean> {
  const found = await unlessMissing(disk.stat(file));
  return found === undefined || Math.abs(now() - found.mtimeMs) > STALE_MS;
}
