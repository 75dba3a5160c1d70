// One story of a log on the real emulator: several outboxes that deliver, and several writers that die anywhere.
import type { BlobLogStore } from '../../../functions/audit/log/blob-log-store.ts';
import { randomOf } from '../../fake/random.ts';
import { Died, findWrong, mortal, Sender, type SignersOf, writerOf } from './emulated-log.ts';

/** A notification for waiting tasks, in place of polling. */
class Bell {
  #waiting: (() => void)[] = [];
  heard(): Promise<void> {
    return new Promise((settle) => void this.#waiting.push(settle));
  }
  ring(): void {
    for (const settle of this.#waiting.splice(0)) settle();
  }
}

interface ChaosParts {
  /** Storage as the writers see it, and as it is. */
  readonly store: BlobLogStore;
  readonly direct: BlobLogStore;
  readonly signers: SignersOf;
}

/** Several writers until all is in the log; returns how often one died, and whose log it is. */
export async function chaos(
  { store, direct, signers }: ChaosParts,
  seed: number,
): Promise<{ died: number; problems: string[]; zone: string }> {
  const random = randomOf(seed);
  const zone = `chaos-${seed}`;
  const senders = Array.from({ length: 3 }, (_, at) => new Sender(zone, `t${at}`, 20 + Math.floor(random() * 40)));
  const [sent, committed] = [new Bell(), new Bell()];
  const badness = 0.002 + random() * 0.02;
  const dies = () => (random() < badness ? (random() < 0.5 ? ('before' as const) : ('after' as const)) : undefined);
  let died = 0;
  let open = true;
  const write = async () => {
    while (open) {
      const writer = writerOf(mortal(store, dies), zone, signers);
      try {
        while (open) {
          const { kind } = await writer.round();
          if (kind !== 'beaten') committed.ring();
          if (kind === 'idle' && open) await sent.heard();
        }
      } catch (error) {
        if (error instanceof Died) died += 1;
        // Storage that failed for good ends a process as well; what is wrong with the log is not.
        else if (!(error instanceof Error) || !('code' in error || 'statusCode' in error)) throw error;
      }
    }
  };
  const deliver = async (sender: Sender) => {
    for (let done = 0; done < sender.count; ) {
      const to = Math.min(sender.count, done + 1 + Math.floor(random() * 20));
      const from = done + 1;
      await sender.send(store, from, to).catch(() => {});
      // The same is sent again until it is there, and now and then once more.
      while (done < to) {
        sent.ring();
        await committed.heard();
        done = await sender.acknowledged(direct);
        if (done < to || random() < 0.3) await sender.send(store, from, to).catch(() => {});
      }
    }
  };
  const writing = Promise.all(Array.from({ length: 3 }, write));
  await Promise.race([Promise.all(senders.map(deliver)), writing]);
  open = false;
  sent.ring();
  await writing;
  const last = writerOf(direct, zone, signers);
  for (let rounds = 0; rounds < 3; rounds += 1) await last.round();
  return { died, problems: await findWrong(direct, zone, senders), zone };
}
