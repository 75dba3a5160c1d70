import type { ServedModel } from '../models/served-model.ts';
import { addRequest, type Rate, startRate } from '../tier/rate.ts';
import { RATE_HALF_LIFE_MS, SLOW_HALF_LIFE_MS, type TierModel } from '../tier/state.ts';
import type { KnownRevision } from './known-revision.ts';
import { floorOf, type Wanted } from './wanted.ts';

/** Assumed until measured: memory of a loaded network by its files, and speeds of storage, disk and loading. */
const MEMORY_PER_FILE_BYTE = 1.5;
const BYTES_PER_SECOND = { blob: 50e6, ssd: 500e6, ram: 1e9 } as const;

export const idOf = (model: string, revision: string): string => `${model} ${revision}`;

/** A known revision and its state at this agent. */
export class Resident {
  /** Its source is replaced where the mounted repository has other files by now. */
  known: KnownRevision;
  /** Its files come from the mounted repository. */
  isMounted = false;
  readonly fileBytes: number;
  #wanted: Wanted['role'] | undefined;
  /** Epoch ms at which the release stopped naming it. */
  unwantedSince = Number.NEGATIVE_INFINITY;
  /** Its model while the engine has loaded it. */
  served: ServedModel | undefined;
  /** Requests find its model. */
  ready = false;
  loadedAt = 0;
  inRam = false;
  inSsd = false;
  /** Requests and streams that hold it. */
  leases = 0;
  /** Requests that wait for its load, by arrival (epoch ms). */
  readonly waiting = new Map<() => void, number>();
  #gpuBytes: number;
  #seconds: { blob: number; ssd: number; ram: number };
  #rate: Rate;
  #slowRate: Rate;

  constructor(known: KnownRevision, now: number) {
    this.known = known;
    this.fileBytes = known.files.reduce((sum, { bytes }) => sum + bytes, 0);
    this.#gpuBytes = this.fileBytes * MEMORY_PER_FILE_BYTE;
    const ram = 0.1 + this.fileBytes / BYTES_PER_SECOND.ram;
    const ssd = ram + this.fileBytes / BYTES_PER_SECOND.ssd;
    this.#seconds = { ram, ssd, blob: ssd + this.fileBytes / BYTES_PER_SECOND.blob };
    this.#rate = startRate(RATE_HALF_LIFE_MS, now);
    this.#slowRate = startRate(SLOW_HALF_LIFE_MS, now);
  }

  get id(): string {
    return idOf(this.known.description.name, this.known.digest);
  }

  /** Memory of the loaded model, bytes: measured, or estimated from its files. */
  get gpuBytes(): number {
    return this.#gpuBytes;
  }

  get wanted(): Wanted['role'] | undefined {
    return this.#wanted;
  }

  assign(role: Wanted['role'] | undefined, now: number): void {
    if (this.#wanted && !role) this.unwantedSince = now;
    this.#wanted = role;
  }

  /** The engine has it no more. */
  withdraw(): void {
    this.served = undefined;
    this.ready = false;
  }

  /** Ends the wait of each request. */
  wake(): void {
    for (const wake of this.waiting.keys()) wake();
  }

  count(now: number): void {
    this.#rate = addRequest(this.#rate, now);
    this.#slowRate = addRequest(this.#slowRate, now);
  }

  /** Takes the measured memory of a load and its time from ram, seconds. */
  measureLoad(bytes: number | undefined, seconds: number): void {
    this.#gpuBytes = bytes ?? this.#gpuBytes;
    const { ssd, blob, ram } = this.#seconds;
    this.#seconds = { ram: seconds, ssd: seconds + ssd - ram, blob: seconds + blob - ram };
  }

  /** Takes the measured time of a copy into a tier, seconds. */
  measureFill(tier: 'ram' | 'ssd', seconds: number): void {
    const { ssd, blob, ram } = this.#seconds;
    this.#seconds =
      tier === 'ram'
        ? { ram, ssd: ram + seconds, blob: ram + seconds + blob - ssd }
        : { ram, ssd, blob: ssd + seconds };
  }

  /** Returns the view of the tier policy; while loads fail, the model is in no demand. */
  toTierModel({ now, allFit, isBackingOff, device }: TierView): TierModel {
    const floor = this.wanted && !isBackingOff ? floorOf(this.wanted, allFit) : undefined;
    const since = Math.min(...this.waiting.values());
    // The past traffic of a revision that is not wanted brings no more of it.
    const none = startRate(RATE_HALF_LIFE_MS, now);
    return {
      id: this.id,
      language: this.known.description.languages[0] ?? 'und',
      gpuBytes: this.#gpuBytes,
      fileBytes: this.fileBytes,
      loadSeconds: this.#seconds,
      rate: isBackingOff || !this.wanted ? none : this.#rate,
      slowRate: this.wanted ? this.#slowRate : none,
      ...(!isBackingOff && this.waiting.size > 0 && { waitingSince: since }),
      leases: this.leases,
      ...(floor && { floor }),
      // A canary or grey revision is needed for as long as the release names it.
      ...(!isBackingOff && this.wanted === 'trial' && { needed: true }),
      ...(this.served && { device, deviceSince: this.loadedAt }),
      inRam: this.inRam,
      inSsd: this.inSsd,
    };
  }
}

export interface TierView {
  /** Epoch ms. */
  readonly now: number;
  /** All stable revisions fit into the memory of the engine. */
  readonly allFit: boolean;
  /** The last load failed, and the next one is not due. */
  readonly isBackingOff: boolean;
  readonly device: string;
}
