// Epochs of an outbox, consecutive, each with an open and a close event. When an epoch begins before the
// previous one closed, the log records an interruption. That leaf has no tenant number, so nothing else would
// reveal its omission.
import type { LeafFacts } from './leaf-facts.ts';

/** `mute`: the producer sends neither event; its first event identifies the epoch. */
type Life = 'mute' | 'going' | 'ended';

export class OutboxLives {
  readonly #lives = new Map<string, Map<string, Life>>();

  /** Records the log's own entry that an epoch was interrupted. */
  breakOff(outbox: string, epoch: string): void {
    this.#of(outbox).set(epoch, 'ended');
  }

  /** Takes a leaf of an outbox. Returns earlier epochs without evidence of an end. */
  see({ type, leaf, p, ep, pseq }: LeafFacts): string[] {
    const lives = this.#of(p);
    if (type === 'producer.close') lives.set(ep, 'ended');
    // An outbox that began before the bundle may be open or closed.
    else if (!lives.has(ep)) lives.set(ep, pseq === 1 ? 'mute' : 'going');
    if (type !== 'producer.open') return [];
    lives.set(ep, 'going');
    const others = [...lives].filter(([other, life]) => other !== ep && life === 'going').map(([other]) => other);
    for (const other of others) lives.set(other, 'ended');
    return others.filter((other) => other !== leaf.previous);
  }

  #of(outbox: string): Map<string, Life> {
    const known = this.#lives.get(outbox);
    if (known) return known;
    const fresh = new Map<string, Life>();
    this.#lives.set(outbox, fresh);
    return fresh;
  }
}
