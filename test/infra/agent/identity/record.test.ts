import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { openOutbox, trimOutbox } from '../../../../infra/pool/agent/identity/record.ts';
import { type AuditEvent, auditEvent } from '../../../../shared/audit/event.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'auricle-outbox-'));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const loaded = (model: string) =>
  ({ type: 'model.revision', agent: 'agent-1', action: 'loaded', model, revision: 'sha256:0' }) as const;

describe('A21: audit events of the agent', () => {
  it('survive a restart until they are acknowledged', () => {
    const first = openOutbox(folder, 'agent-1', () => 1_000);
    first.record(loaded('a'));
    first.record(loaded('b'));
    const again = openOutbox(folder, 'agent-1', () => 2_000);
    const batch = again.batch();
    expect(batch.map((event) => auditEvent.parse(event))).toMatchObject([
      { v: 1, at: 1_000, producer: 'agent-1', model: 'a' },
      { model: 'b' },
    ]);
    again.acknowledge([batch[0]?.id ?? '']);
    expect(openOutbox(folder, 'agent-1', () => 0).batch()).toMatchObject([{ model: 'b' }]);
  });

  it('a line that is damaged costs that event only', () => {
    openOutbox(folder, 'agent-1', () => 1).record(loaded('a'));
    const file = path.join(folder, 'outbox.ndjson');
    appendFileSync(file, '{"v":1,"type":"keys"');
    expect(openOutbox(folder, 'agent-1', () => 1).size()).toBe(1);
    expect(readFileSync(file, 'utf8')).toContain('"a"');
  });

  it('go in batches that fit a message', () => {
    const outbox = openOutbox(folder, 'agent-1', () => 1);
    for (let i = 0; i < 70; i++) outbox.record(loaded(`model-${i}`));
    expect(outbox.batch().length).toBe(64);
    expect(Buffer.byteLength(JSON.stringify(outbox.batch()))).toBeLessThan(48 * 1_024);
  });

  it('beyond the bound the oldest give way to one gap that counts them', () => {
    const event = (at: number): AuditEvent => ({ v: 1, id: 'x', at, producer: 'a', ...loaded('m') });
    const gap = (lost: AuditEvent[]): AuditEvent => ({
      v: 1,
      id: 'gap',
      at: 9,
      producer: 'a',
      type: 'gap',
      lost: lost.length,
      from: lost[0]?.at ?? 0,
      to: lost.at(-1)?.at ?? 0,
    });
    const events = [1, 2, 3, 4].map(event);
    expect(trimOutbox(events, 4, gap)).toEqual(events);
    expect(trimOutbox(events, 3, gap)).toEqual([gap(events.slice(0, 2)), ...events.slice(2)]);
  });
});
