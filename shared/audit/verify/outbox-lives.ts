// Lives of an outbox: one after the other, and each says that it begins and that nothing more is to come. Where the next
// begins and the one before has not ended, the log says that it was broken off. That leaf has no number of the tenant, so
// that nothing else would show that it was left out.
import type { LeafFacts } from './leaf-facts.ts';

/** `mute`: of a producer that says neither, and is told from others by its first event. */
type Life = 'mute' | 'going' | 'ended';

export class OutboxLives {
  readonly #lives = new Map<string, Map<string, Life>>();

  /** The log's own word that a life was broken off. */
  breakOff(outbox: string, epoch: string): void {
    this.#of(outbox).set(epoch, 'ended');
  }

  /** Takes a leaf of an outbox. Returns the lives before it of which nothing shows that they had ended. */
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
