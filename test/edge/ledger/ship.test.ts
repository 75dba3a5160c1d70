import { runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { beforeAll, describe, expect, it } from 'vitest';
import { Outbox } from '../../../edge/ledger/outbox.ts';
import { Shipper } from '../../../edge/ledger/ship.ts';
import type { Bindings } from '../../../edge/settings.ts';
import { ackName, type Delivery, delivery, signAck } from '../../../shared/audit/delivery.ts';
import type { AuditEvent } from '../../../shared/audit/event.ts';
import type { KeyYears } from '../../../shared/audit/key-years.ts';
import { openSigningKey } from '../../../shared/audit/note.ts';
import { toBase64 } from '../../../shared/base64.ts';
import { elsewhere } from '../../fake/network.ts';

const BASE = 'audit.example';
const ORIGIN = `${BASE}/eu/2026`;
/** The pauses of an outbox are a second at most while all goes well. */
const WAIT = { timeout: 8_000, interval: 20 };

type SigningKey = Awaited<ReturnType<typeof openSigningKey>>;
let log: SigningKey;
let other: SigningKey;
beforeAll(async () => {
  log = await openSigningKey(new Uint8Array(32).fill(1));
  other = await openSigningKey(new Uint8Array(32).fill(2));
});

const event = (at: number): AuditEvent => ({
  ...{ v: 1, type: 'gap', id: `017f22e2-79b0-7cc3-98c4-${String(at).padStart(12, '0')}`, at, producer: 'edge' },
  ...{ lost: 0, from: 0, to: 0 },
});

interface Office {
  readonly deliveries: Delivery[];
  /** The answer to each delivery. */
  answer(one: Delivery): Promise<Response>;
}

function openOffice(answer: (one: Delivery) => Promise<Response>): Office {
  const office: Office = { deliveries: [], answer };
  elsewhere.set('functions-eu.test', async (request) => {
    expect(new URL(request.url).pathname).toBe('/api/audit/eu/events');
    const one = delivery.parse(await request.json());
    office.deliveries.push(one);
    return answer(one);
  });
  return office;
}

async function acknowledge({ producer, epoch }: Delivery, upTo: number, key = log, origin = ORIGIN): Promise<Response> {
  return Response.json({ note: await signAck({ origin, producer, epoch, upTo }, key.signer(ackName(origin))) });
}

/** An outbox in the storage of an object of its own, with its way into the log. */
async function withOutbox(
  name: string,
  work: (outbox: Outbox, shipper: Shipper, restart: () => readonly [Outbox, Shipper]) => Promise<void>,
  years: KeyYears = [],
): Promise<void> {
  const bindings = env as unknown as Bindings;
  const key = toBase64(log.publicKey);
  const AUDIT_LOGS = JSON.stringify({ eu: { origin: BASE, key, years } });
  const stub = bindings.GATE.getByName(`${name}/eu`);
  await runInDurableObject(stub as never, async (_gate: unknown, state: DurableObjectState) => {
    const { sql } = state.storage;
    const open = () => {
      const outbox = new Outbox(sql);
      return [outbox, new Shipper(outbox, sql, { ...bindings, AUDIT_LOGS }, `gate/${name}/eu`)] as const;
    };
    await work(...open(), open);
  });
}

const lastOf = ({ rows }: Delivery): number => rows.at(-1)?.to ?? 0;

describe('A21 C9 the way of an outbox into the log', () => {
  it('rows are sent once, polled until the log has them, then deleted', async () => {
    let has = 0;
    const office = openOffice((one) => acknowledge(one, has));
    await withOutbox('ship-once', async (outbox, shipper) => {
      outbox.add([event(1), event(2)], 1);
      outbox.add([event(3)], 2);
      shipper.nudge();
      await expect.poll(() => office.deliveries.length, WAIT).toBeGreaterThan(1);
      expect(office.deliveries.map(({ rows }) => rows.length)).toEqual([2, 0]);
      expect(office.deliveries[0]).toMatchObject({ producer: 'gate/ship-once/eu', epoch: outbox.epoch, oldest: 1 });
      expect(lastOf(office.deliveries[0] as Delivery)).toBe(3);
      expect(outbox.page(0, 10).rows).toHaveLength(3);
      has = 2;
      await expect.poll(() => outbox.oldest, WAIT).toBe(3);
      has = 3;
      await expect.poll(() => outbox.isEmpty, WAIT).toBe(true);
      expect(outbox.page(0, 10).rows).toEqual([]);
      // Numbers go on.
      outbox.add([event(4)], 3);
      expect(outbox.page(0, 10).rows).toMatchObject([{ pseq: 4 }]);
      outbox.forget(4);
    });
  });

  it('each year is acknowledged by its key', async () => {
    const years = [
      { key: toBase64(log.publicKey), from: 2027 },
      { key: toBase64(other.publicKey), until: 2026 },
    ];
    let signed = log;
    const office = openOffice((one) => acknowledge(one, 9, signed));
    await withOutbox(
      'ship-years',
      async (outbox, shipper) => {
        outbox.add([event(1)], 1);
        shipper.nudge();
        await expect.poll(() => office.deliveries.length, WAIT).toBeGreaterThan(0);
        expect(outbox.isEmpty).toBe(false);
        signed = other;
        await expect.poll(() => outbox.isEmpty, WAIT).toBe(true);
      },
      years,
    );
  });

  it('an acknowledgement of another key, log, outbox or life deletes nothing', async () => {
    const lies: Record<string, (one: Delivery) => Promise<Response>> = {
      key: (one) => acknowledge(one, 9, other),
      log: (one) => acknowledge(one, 9, log, 'audit.example/us/2026'),
      outbox: (one) => acknowledge({ ...one, producer: 'gate/b/eu' }, 9),
      life: (one) => acknowledge({ ...one, epoch: crypto.randomUUID() }, 9),
      text: async () => Response.json({ note: 'yes' }),
      error: async () => new Response('{}', { status: 503 }),
      away: () => Promise.reject(new Error('nobody is there')),
    };
    const sent = new Map<string, Delivery[]>();
    openOffice((one) => {
      const [, name = ''] = one.producer.split('/');
      const before = sent.get(name) ?? [];
      sent.set(name, [...before, one]);
      return before.length < 2 ? (lies[name] as (typeof lies)[string])(one) : acknowledge(one, 1);
    });
    const tryOne = (name: string) =>
      withOutbox(name, async (outbox, shipper) => {
        outbox.add([event(1)], 1);
        shipper.nudge();
        await expect.poll(() => sent.get(name)?.length, WAIT).toBe(2);
        expect(outbox.page(0, 10).rows, name).toHaveLength(1);
        await expect.poll(() => outbox.isEmpty, WAIT).toBe(true);
        // It resent everything, because no trusted log had it.
        expect(sent.get(name)?.map(({ rows }) => rows.length)).toEqual([1, 1, 1]);
      });
    await Promise.all(Object.keys(lies).map(tryOne));
  });

  it('resends after a lost acknowledgement, also from the next object, until acknowledged', async () => {
    let heard = false;
    // The log has all of it from the first delivery on; that it says so gets lost.
    const office = openOffice((one) =>
      heard ? acknowledge(one, 2) : Promise.reject(new Error('the answer was lost')),
    );
    await withOutbox('ship-restart', async (outbox, shipper, restart) => {
      outbox.add([event(1), event(2)], 1);
      shipper.nudge();
      await expect.poll(() => office.deliveries.length, WAIT).toBe(1);
      const [again] = restart();
      heard = true;
      await expect.poll(() => again.page(0, 10).rows, WAIT).toEqual([]);
      const [first, second] = office.deliveries;
      expect(second?.rows).toEqual(first?.rows);
      expect([second?.epoch, second?.oldest]).toEqual([first?.epoch, 1]);
    });
  });
});
