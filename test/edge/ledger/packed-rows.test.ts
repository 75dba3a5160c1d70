import { runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { describe, expect, it } from 'vitest';
import { Outbox } from '../../../edge/ledger/outbox.ts';
import type { ReportStep } from '../../../edge/ledger/reserves.ts';
import { auditEvent } from '../../../shared/audit/event.ts';

const REQUEST = '0198c1a2-0000-7000-8000-00000000000a';
const idOf = (at: number, last: string) => `00000000-${at.toString(16).padStart(4, '0')}-7000-8000-00000000000${last}`;

/** A request as earlier versions packed it: one agent, its attempt included. */
const packed = (subject: string) =>
  JSON.stringify({
    subject,
    packed: [
      ...[1, 't', REQUEST, 'transcribe', 'default', 'm', 'en', 1_000, null, null],
      ...[1_001, 1, 'p', 'a', 'eu', 'only', null, 1_002, 200, null, 5, 2, true, 'r1', 1.5],
    ],
  });
const who = { tenant: 't', request: REQUEST, action: 'transcribe', class: 'default' };
const events = (subject: unknown) => [
  { v: 1, id: idOf(1_000, 'b'), producer: 'edge', type: 'inference.attempt', at: 1_000, ...who, subject },
  {
    ...{ v: 1, id: idOf(1_001, '8'), producer: 'edge', type: 'route', at: 1_001, tenant: 't', request: REQUEST },
    ...{ attempt: 1, pool: 'p', agent: 'a', zone: 'eu', why: 'only' },
  },
  {
    ...{ v: 1, id: idOf(1_002, '9'), producer: 'edge', type: 'inference.complete', at: 1_002, ...who, subject },
    ...{ model: 'm', language: 'en', status: 200, bytes: 5, milliseconds: 2, agent: 'a', revision: 'r1' },
    audioSeconds: 1.5,
  },
];

const freshGate = () => env.GATE.getByName(`tenant-${crypto.randomUUID()}/eu`);

describe('C9 packed requests of earlier versions', () => {
  it('rows in an outbox are delivered and paged as events', async () => {
    const gate = freshGate();
    await gate.apply([{ kind: 'record', events: [] }]);
    const seen = await runInDurableObject(gate, (_, { storage: { sql } }) => {
      sql.exec('INSERT INTO ev VALUES (3, ?, 1)', `[${packed('c1:x')}]`);
      sql.exec('UPDATE meta SET next = 4');
      const outbox = new Outbox(sql);
      return { page: outbox.page(0, 10), sent: outbox.rows(0, 10, 1e6)?.json ?? '', oldest: outbox.oldest };
    });
    expect(seen.page.rows.map(({ pseq, event }) => [pseq, event])).toEqual(
      events('c1:x').map((event, at) => [at + 1, event]),
    );
    expect(JSON.parse(seen.sent)).toEqual({ to: 3, t: 1, events: events('c1:x') });
    expect(seen.oldest).toBe(1);
    for (const event of events('c1:x')) expect(auditEvent.parse(event)).toEqual(event);
  });

  it('reports of isolates that an update has not reached lose no event', async () => {
    const gate = freshGate();
    const step: ReportStep = {
      kind: 'report',
      report: {
        ...{ holder: crypto.randomUUID(), seq: 1, keep: { places: 0, starts: 0 }, want: { places: 0, starts: 0 } },
        ...{ spent: 1, began: [], ended: [], audioSeconds: 0 },
      },
      allowance: {},
      events: [],
      written: [{ json: packed('bob') }],
    };
    await gate.apply([step]);
    const { rows } = await gate.outbox(0, 10);
    expect(rows.map(({ event }) => event)).toEqual(events(await gate.commitmentOf('bob')));
  });
});
