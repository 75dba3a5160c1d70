import { KiB, MiB } from '../../shared/bytes.ts';
import type { ClientFrame, SessionEvent } from '../protocol/live-protocol.ts';

/**
 * Sent and unacknowledged events: several hours of transcript. For other clients, answers to messages beyond
 * their audio.
 */
export const STREAM_UNREAD_BYTES = MiB;
/**
 * Least charge of a client's text message against STREAM_UNREAD_BYTES: the runtime keeps a kilobyte for each
 * unread answer.
 */
export const STREAM_REQUEST_BYTES = 256;
/**
 * Events per second of sound for a client without acknowledgements: beyond it no interims, beyond twice it
 * the session ends. Speech makes 3 KiB.
 */
export const STREAM_EVENT_BYTES = 8 * KiB;

/**
 * Bounds what one client leaves unread: the runtime buffers it, and does not say how much. A client may count the
 * messages that it has seen. For any other the audio that it sends decides how much it may get.
 */
export class UnreadLimit {
  /** Sizes of the messages that the client has not seen, oldest first. */
  readonly #unread: number[] = [];
  #unreadBytes = 0;
  #seen = 0;
  #clientCounts = false;
  /** Bytes of replies and requests beyond the bytes of audio. */
  #replyBytes = 0;
  /** Bytes of events, and the span of audio that they are about, in seconds. */
  #eventBytes = 0;
  #from = Number.POSITIVE_INFINITY;
  #until = 0;

  /** Reports whether to send an event: a client that may be too slow gets no interims. */
  allows(event: SessionEvent): boolean {
    if (event.type === 'interim' || event.type === 'segment') {
      this.#from = Math.min(this.#from, event.start);
      this.#until = Math.max(this.#until, event.end);
    } else if (event.type === 'resumed') {
      this.#from = Math.min(this.#from, event.time);
      this.#until = Math.max(this.#until, event.time);
    }
    return event.type !== 'interim' || this.#clientCounts || this.#eventBytes <= this.#eventAllowance;
  }

  /** Bytes of events that the audio so far may take: more than speech ever does. */
  get #eventAllowance(): number {
    const seconds = Math.max(0, this.#until - this.#from);
    return STREAM_UNREAD_BYTES + seconds * STREAM_EVENT_BYTES;
  }

  /** Counts the frames of an event. Returns false when the client is too slow. */
  addEvent(frames: readonly ClientFrame[]): boolean {
    for (const { length } of frames) this.#eventBytes += length;
    return this.#clientCounts || this.#eventBytes <= 2 * this.#eventAllowance;
  }

  /**
   * Counts a message of the client: audio pays for replies, everything else costs. Returns false when the client sends
   * too much that is not audio. `text`: characters, 0 for a binary message.
   */
  addMessage(text: number, audio: number): boolean {
    this.#replyBytes = Math.max(0, this.#replyBytes - audio);
    const least = STREAM_REQUEST_BYTES;
    if (audio === 0) return this.addReply(Math.max(least, text));
    // Base64 takes four thirds of the audio, and some clients escape each slash of it.
    return this.addReply(Math.max(0, text - 2 * audio - least));
  }

  /**
   * Counts a reply. Returns false when replies exceed the audio by too much. The count of a client does not help here: it
   * can count without reading.
   */
  addReply(bytes: number): boolean {
    this.#replyBytes += bytes;
    return this.#replyBytes <= STREAM_UNREAD_BYTES;
  }

  /** Counts a frame for a protocol with `seen`. Returns false when a client that counts has too much unread. */
  addFrame(bytes: number): boolean {
    this.#unread.push(bytes);
    this.#unreadBytes += bytes;
    if (this.#unreadBytes <= STREAM_UNREAD_BYTES) return true;
    if (this.#clientCounts) return false;
    this.#drop(this.#seen + 1);
    return true;
  }

  /** Takes the number of messages that the client has seen. Returns false when that is more than there were. */
  acknowledge(seen: number): boolean {
    this.#clientCounts = true;
    const sent = this.#seen + this.#unread.length;
    this.#drop(seen);
    return seen <= sent;
  }

  #drop(seen: number): void {
    for (; this.#seen < seen && this.#unread.length > 0; this.#seen++) {
      this.#unreadBytes -= this.#unread.shift() ?? 0;
    }
  }
}
