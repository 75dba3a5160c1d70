import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { newId } from '../../edge/audit/mint.ts';
import { type Opening, packRequest, readPacked, type Told, unpacked } from '../../edge/audit/packed.ts';
import { auditEvent } from '../../shared/audit/event.ts';
import { limits } from '../../shared/limits.ts';

const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 });
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
const time = fc.integer({ min: 0, max: 2 ** 42 });
const count = fc.integer({ min: 0, max: 1e6 });
const who = fc.record({ tenant: text, action: text, class: text, subject: maybe(text) });
const words = fc.record({ model: maybe(text), language: maybe(text) });
const route = fc.record({
  attempt: count,
  pool: text,
  agent: text,
  zone: text,
  why: text,
  outcome: maybe(text),
});
const end = fc.record({
  status: count,
  reason: maybe(text),
  bytes: count,
  milliseconds: count,
  revision: maybe(text),
  audioSeconds: maybe(fc.double({ min: 0, max: 1e6, noNaN: true })),
});

const request = fc
  .record({ who, told: words, learned: words, route, end, at: fc.tuple(time, time, time), named: fc.boolean() })
  .map(({ who: caller, told, learned, route: way, end: how, at: [opened, routed, ended], named }) => {
    const id = newId(opened);
    const { tenant } = caller;
    const agent = named ? way.agent : undefined;
    const opening: Opening = { who: { ...caller, request: id, ...told }, at: opened };
    const heard: Told = {
      notes: [{ at: routed, draft: { type: 'route', tenant, request: id, ...way } }],
      end: { at: ended, draft: { type: 'inference.complete', ...caller, request: id, ...learned, ...how, agent } },
    };
    return { opening, heard };
  });

const parsed = (json: string) => readPacked(JSON.parse(json));
/** As they come out of an outbox that never packed them, but for their ids. */
const plain = (events: readonly unknown[]) =>
  events.map((event) => ({ ...(JSON.parse(JSON.stringify(event)) as object), id: undefined }));

describe('A1 events of one request as one text', () => {
  it('are, when they are read, the events that were packed', () => {
    fc.assert(
      fc.property(request, fc.boolean(), ({ opening, heard }, whole) => {
        const attempt = whole ? opening : undefined;
        const packed = packRequest(attempt, heard);
        const read = parsed(packed?.json ?? '');
        expect(plain(read)).toEqual(plain(unpacked(attempt, heard)));
        expect(read).toHaveLength(packed?.count ?? 0);
        for (const event of read) expect(auditEvent.parse(event)).toEqual(event);
      }),
    );
  });

  it('have ids of their own, the same at every reading, with the time of each', () => {
    fc.assert(
      fc.property(request, ({ opening, heard }) => {
        const { json = '' } = packRequest(opening, heard) ?? {};
        const ids = (parsed(json) as { id: string; at: number }[]).map(({ id }) => id);
        expect(new Set([...ids, opening.who.request]).size).toBe(4);
        expect((parsed(json) as { id: string }[]).map(({ id }) => id)).toEqual(ids);
        const times = ids.map((id) => Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16));
        expect(times).toEqual([opening.at, heard.notes[0]?.at, heard.end.at]);
      }),
    );
  });

  it('are not packed when there is more or less to tell than one route, or too much', () => {
    fc.assert(
      fc.property(request, ({ opening, heard }) => {
        const { notes, end: last } = heard;
        const other = { at: last.at, draft: { ...last.draft, agent: `${last.draft.agent} and not` } };
        const long = { at: last.at, draft: { ...last.draft, language: 'x'.repeat(limits.auditEventBytes.value / 4) } };
        expect(packRequest(opening, { ...heard, notes: [] })).toBeUndefined();
        expect(packRequest(opening, { ...heard, notes: [...notes, ...notes] })).toBeUndefined();
        expect(packRequest(opening, { ...heard, end: other })).toBeUndefined();
        expect(packRequest(opening, { ...heard, end: long })).toBeUndefined();
      }),
    );
  });
});
