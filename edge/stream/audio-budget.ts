import { KiB, MiB } from '../../shared/bytes.ts';

/** Memory reserved for each session: over a second of 16 kHz sound and its slab. */
export const STREAM_RESERVED_BYTES = 64 * KiB;
/**
 * Memory by which new sessions are admitted: half of an eight-second utterance of 16 kHz sound, since utterances of many
 * sessions are out of phase. An isolate admits 512 sessions, a tenant 384. More would stop each other mid-utterance,
 * where no audio can be dropped.
 */
export const STREAM_EXPECTED_BYTES = 128 * KiB;
/**
 * Memory of a session at the pace of speech: the longest 48 kHz utterance and a move to another pool. As much
 * stays free for it.
 */
export const STREAM_PACED_BYTES = 4 * MiB;
/**
 * Buffered audio of one tenant in one isolate: one session at STREAM_RING_BYTES; others find a quarter of the
 * isolate free.
 */
export const STREAM_TENANT_BYTES = 48 * MiB;
/**
 * Buffered audio in one isolate, copies of the message being read included: half of its 128 MB, shared with
 * BUFFERED_BYTES_IN_FLIGHT.
 */
export const STREAM_ISOLATE_BYTES = 64 * MiB;

/** Audio that one session buffers. */
export interface BufferedAudio {
  /** Memory that it takes, bytes. */
  readonly memory: number;
}

/** Bounds of one isolate, in bytes. */
export interface AudioBounds {
  /** Part of each session that no other session may take. */
  readonly reserved: number;
  /** Part of each session by which new ones are admitted. */
  readonly expected: number;
  /** Memory of a session at the pace of speech. New sessions, and sessions beyond it, leave as much free. */
  readonly paced: number;
  /** Sum over the sessions of one tenant; only reserved parts exceed it. */
  readonly tenant: number;
  /** Sum over all sessions. Nothing exceeds it. */
  readonly isolate: number;
}

/** The part of one session in a budget. */
export interface AudioLease {
  /** Reports whether the session may buffer so many more bytes, which count from then on. */
  mayGrow(bytes: number): boolean;
  end(): void;
}

interface Entry {
  readonly tenant: string;
  readonly audio: WeakRef<BufferedAudio>;
  /** Bytes that count for the session: never less than it takes. */
  counted: number;
}

const usual: AudioBounds = {
  reserved: STREAM_RESERVED_BYTES,
  expected: STREAM_EXPECTED_BYTES,
  paced: STREAM_PACED_BYTES,
  tenant: STREAM_TENANT_BYTES,
  isolate: STREAM_ISOLATE_BYTES,
};

/** Copies of a message while it is read: a binary one and the ring's copy; base64, its JSON value and its bytes. */
const COPIES = { binary: 2, text: 3 } as const;

/**
 * Limits the audio that the sessions of an isolate buffer. Each session counts `reserved` bytes at least, so the sum
 * bounds their number, too. Counts fall behind when agents settle audio; they are read again before anything is refused.
 * References are weak: a session whose object the platform has destroyed counts until its memory is collected.
 */
export class AudioBudget {
  readonly #bounds: AudioBounds;
  readonly #entries = new Set<Entry>();
  readonly #tenants = new Map<string, number>();
  #total = 0;

  constructor(bounds: AudioBounds = usual) {
    this.#bounds = bounds;
  }

  /** Reports whether the isolate takes another session of a tenant. */
  mayEnter(tenant: string): boolean {
    const { reserved, expected, paced, tenant: ofTenant, isolate } = this.#bounds;
    if (!this.#fits(reserved + paced, tenant)) return false;
    const own = [...this.#entries].filter((entry) => entry.tenant === tenant).length;
    return (own + 1) * expected <= ofTenant && (this.#entries.size + 1) * expected <= isolate;
  }

  enter(tenant: string, audio: BufferedAudio): AudioLease {
    const entry: Entry = { tenant, audio: new WeakRef(audio), counted: 0 };
    this.#entries.add(entry);
    this.#count(entry, audio.memory);
    return {
      mayGrow: (bytes) => this.#mayGrow(entry, audio.memory, bytes),
      end: () => this.#delete(entry),
    };
  }

  /** Reports whether a message of so many bytes may be read now. Short ones always may: one is read at a time. */
  mayRead(bytes: number, kind: keyof typeof COPIES): boolean {
    return bytes <= this.#bounds.reserved || this.#fits(bytes * COPIES[kind]);
  }

  /** Returns what the sessions of one tenant, or all sessions, count. */
  bytes(tenant?: string): number {
    this.#recount();
    return tenant === undefined ? this.#total : (this.#tenants.get(tenant) ?? 0);
  }

  #mayGrow(entry: Entry, own: number, bytes: number): boolean {
    const { reserved, paced } = this.#bounds;
    this.#count(entry, own);
    const grown = own + bytes;
    if (grown > reserved) {
      const more = grown - entry.counted;
      if (!this.#fits(grown > paced ? more + paced : more, entry.tenant)) return false;
    }
    this.#count(entry, grown);
    return true;
  }

  #fits(more: number, tenant?: string): boolean {
    if (this.#hasRoom(more, tenant)) return true;
    this.#recount();
    return this.#hasRoom(more, tenant);
  }

  #hasRoom(more: number, tenant?: string): boolean {
    const { tenant: ofTenant, isolate } = this.#bounds;
    if (tenant !== undefined && (this.#tenants.get(tenant) ?? 0) + more > ofTenant) return false;
    return this.#total + more <= isolate;
  }

  #recount(): void {
    for (const entry of this.#entries) {
      const audio = entry.audio.deref();
      if (audio) this.#count(entry, audio.memory);
      else this.#delete(entry);
    }
  }

  #count(entry: Entry, memory: number): void {
    if (this.#entries.has(entry)) this.#add(entry, Math.max(this.#bounds.reserved, memory) - entry.counted);
  }

  #delete(entry: Entry): void {
    if (this.#entries.delete(entry)) this.#add(entry, -entry.counted);
  }

  #add(entry: Entry, bytes: number): void {
    entry.counted += bytes;
    this.#total += bytes;
    const sum = (this.#tenants.get(entry.tenant) ?? 0) + bytes;
    if (sum > 0) this.#tenants.set(entry.tenant, sum);
    else this.#tenants.delete(entry.tenant);
  }
}

/** The budget of this isolate. */
export const audioBudget = new AudioBudget();
