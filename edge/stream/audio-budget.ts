import { limits } from '../../shared/limits.ts';

/** Audio that one session buffers. */
export interface BufferedAudio {
  /** Memory that it takes, bytes. */
  readonly memory: number;
}

/** Bounds of one isolate, in bytes. */
export interface AudioBounds {
  /** A session may buffer this much in any case. */
  readonly share: number;
  /** Above this sum over its sessions a tenant's sessions keep to their share. */
  readonly tenant: number;
  /** The same of all sessions. */
  readonly isolate: number;
}

/** The part of one session in a budget. */
export interface AudioLease {
  /** Reports whether the session may buffer so many more bytes. */
  mayGrow(bytes: number): boolean;
  end(): void;
}

interface Entry {
  readonly tenant: string;
  readonly audio: WeakRef<BufferedAudio>;
}

const usual: AudioBounds = {
  share: limits.streamShareBytes.value,
  tenant: limits.streamTenantBytes.value,
  isolate: limits.streamIsolateBytes.value,
};

/**
 * Accounts for the audio that the sessions of an isolate buffer. A session that keeps up with speech stays within its
 * share and is never refused. Audio sent faster than agents recognise it comes out of what tenant and isolate have left.
 * References are weak: a session whose object the platform has destroyed counts until its memory is collected.
 */
export class AudioBudget {
  readonly #bounds: AudioBounds;
  readonly #entries = new Set<Entry>();

  constructor(bounds: AudioBounds = usual) {
    this.#bounds = bounds;
  }

  enter(tenant: string, audio: BufferedAudio): AudioLease {
    const entry = { tenant, audio: new WeakRef(audio) };
    this.#entries.add(entry);
    return {
      mayGrow: (bytes) => this.#mayGrow(tenant, audio.memory, bytes),
      end: () => void this.#entries.delete(entry),
    };
  }

  /** Sums over all sessions only above the share, which is the exception. */
  #mayGrow(tenant: string, own: number, bytes: number): boolean {
    const { share, tenant: ofTenant, isolate } = this.#bounds;
    if (own + bytes <= share) return true;
    return this.bytes(tenant) + bytes <= ofTenant && this.bytes() + bytes <= isolate;
  }

  /** Returns what the sessions of one tenant, or all sessions, buffer. */
  bytes(tenant?: string): number {
    let sum = 0;
    for (const entry of this.#entries) {
      const audio = entry.audio.deref();
      if (!audio) this.#entries.delete(entry);
      else if (tenant === undefined || entry.tenant === tenant) sum += audio.memory;
    }
    return sum;
  }
}

/** The budget of this isolate. */
export const audioBudget = new AudioBudget();
