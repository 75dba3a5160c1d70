// Picks the deliveries of a commit: the first of each outbox, then the second of each, up to the bound,
// starting where the last commit stopped. An outbox that sends without pause delays the others by one
// delivery, and no outbox starves because of its name.

export interface Picked {
  readonly names: readonly string[];
  /** The outbox that was looked at last; the next commit begins behind it. */
  readonly last: string | undefined;
}

interface Named {
  readonly name: string;
  /** `zone/outbox/epoch`. */
  readonly outbox: string;
  readonly count: number;
}

export const outboxOf = (name: string): string => name.slice(0, name.lastIndexOf('/'));

/** Names as `nameOfReceived` writes them, which rise with the numbers of their events. */
function read(name: string): Named {
  const outbox = outboxOf(name);
  const [from, to] = name.slice(outbox.length + 1).split('-');
  return { name, outbox, count: Math.max(1, Number(to) - Number(from) + 1 || 1) };
}

/** `room`: events of a commit. `most`: deliveries that it reads. */
export function pickWaiting(names: readonly string[], room: number, most: number, after: string | undefined): Picked {
  const queues = Map.groupBy(names.toSorted().map(read), ({ outbox }) => outbox);
  const outboxes = [...queues.keys()];
  const start = after === undefined ? 0 : outboxes.findIndex((outbox) => outbox > after);
  const turns = start <= 0 ? outboxes : [...outboxes.slice(start), ...outboxes.slice(0, start)];
  const picked: string[] = [];
  let [left, last] = [room, after];
  for (let round = 0; left > 0 && picked.length < most; round += 1) {
    const before = picked.length;
    for (const outbox of turns) {
      const next = queues.get(outbox)?.[round];
      if (!next || left <= 0 || picked.length >= most) continue;
      picked.push(next.name);
      left -= next.count;
      last = outbox;
    }
    if (picked.length === before) break;
  }
  return { names: picked, last };
}
