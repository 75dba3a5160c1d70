import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type AuditEvent, auditEvent } from '../../../../shared/audit/event.ts';
import { eventId } from '../../../../shared/audit/event-id.ts';
import { KiB } from '../../../../shared/bytes.ts';
import { AGENT_BATCH_EVENTS_MAX } from '../../../../shared/pool/heartbeat.ts';

/** Audit events of an agent that wait for its registry; beyond it the oldest give way to a gap event. */
const AGENT_OUTBOX_EVENTS_MAX = 4_096;
/** Audit events of one message to the registry: base64url and a signature keep it under HEARTBEAT_BYTES. */
const AGENT_BATCH_BYTES = 40 * KiB;

type Unstamped<T> = T extends AuditEvent ? Omit<T, 'v' | 'id' | 'at' | 'producer'> : never;
/** An event without the members that the outbox adds: agent, id, time. */
export type AgentEvent = Unstamped<Extract<AuditEvent, { type: 'keys' | 'model.revision' | 'pool.degrade' | 'gap' }>>;

export interface Outbox {
  /** Takes an event over: it is on disk when this returns. */
  record(event: AgentEvent): void;
  /** The oldest events, as many as one message carries. */
  batch(): AuditEvent[];
  /** The roster has these: they may be forgotten. */
  acknowledge(ids: readonly string[]): void;
  size(): number;
}

/** Makes room by giving up the oldest events, and says so in their place. */
export function trimOutbox(events: readonly AuditEvent[], most: number, gap: (lost: AuditEvent[]) => AuditEvent) {
  if (events.length <= most) return [...events];
  const kept = events.slice(events.length - most + 1);
  return [gap(events.slice(0, events.length - most + 1)), ...kept];
}

/**
 * Audit events of this agent that the roster has not acknowledged. Written by this process alone, rewritten whole,
 * as there are few; kept until acknowledged or until the bound. If the file is lost, so are these events; if it is
 * forged, the log gets what a process inside this pod could have reported anyway.
 */
export function openOutbox(folder: string, agent: string, now: () => number): Outbox {
  mkdirSync(folder, { recursive: true });
  const file = path.join(folder, 'outbox.ndjson');
  let events = readEvents(file);

  const complete = (event: AgentEvent): AuditEvent => ({
    v: 1,
    id: eventId(now(), randomBytes(10)),
    at: now(),
    producer: agent,
    ...event,
  });

  function save() {
    const draft = `${file}.new`;
    writeFileSync(draft, events.map((event) => `${JSON.stringify(event)}\n`).join(''), { mode: 0o600 });
    renameSync(draft, file);
  }

  return {
    record(event) {
      events = trimOutbox([...events, complete(event)], AGENT_OUTBOX_EVENTS_MAX, (lost) => {
        // A gap that is itself given up counts for what it stood for.
        const count = lost.reduce((sum, event) => sum + (event.type === 'gap' ? event.lost : 1), 0);
        const from = lost[0]?.type === 'gap' ? lost[0].from : (lost[0]?.at ?? 0);
        return complete({ type: 'gap', lost: count, from, to: lost.at(-1)?.at ?? from });
      });
      save();
    },
    batch() {
      const batch: AuditEvent[] = [];
      let bytes = 0;
      for (const event of events.slice(0, AGENT_BATCH_EVENTS_MAX)) {
        bytes += Buffer.byteLength(JSON.stringify(event));
        if (bytes > AGENT_BATCH_BYTES && batch.length > 0) break;
        batch.push(event);
      }
      return batch;
    },
    acknowledge(ids) {
      const known = new Set(ids);
      events = events.filter(({ id }) => !known.has(id));
      save();
    },
    size: () => events.length,
  };
}

/** A line that cannot be read was cut by a crash of an older version; the others still count. */
function readEvents(file: string): AuditEvent[] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch {
    return [];
  }
  return text
    .split('\n')
    .filter(Boolean)
    .flatMap((line) => {
      try {
        return [auditEvent.parse(JSON.parse(line))];
      } catch {
        return [];
      }
    });
}
