import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { RESUME_TOKEN_CHARACTERS } from '../../edge/limits.ts';
import { STREAM_CLIENT_BYTES } from '../../edge/protocol/auricle-stream.ts';
import { STREAM_CONTROL_CHARACTERS } from '../../edge/protocol/read-text.ts';
import {
  STREAM_EXPECTED_BYTES,
  STREAM_ISOLATE_BYTES,
  STREAM_PACED_BYTES,
  STREAM_RESERVED_BYTES,
  STREAM_TENANT_BYTES,
} from '../../edge/stream/audio-budget.ts';
import { STREAM_RING_BYTES } from '../../edge/stream/audio-ring.ts';
import { STREAM_MESSAGE_BYTES } from '../../edge/stream/client-socket.ts';
import { STREAM_SILENCE_MS, STREAM_STARVED_MORE_MS, STREAM_STARVED_MS } from '../../edge/stream/deadlines.ts';
import { STREAM_FINISH_MS, STREAM_IDLE_MS, STREAM_RESUME_MS } from '../../edge/stream/limits.ts';
import { STREAM_RELIEF_BYTES, STREAM_WINDOW_BYTES } from '../../edge/stream/replay-buffer.ts';
import { after, events, states, transitions } from '../../edge/stream/session-state.ts';
import { STREAM_SESSION_S } from '../../edge/stream/stream-start.ts';
import { STREAM_FIND_MS, STREAM_MOVE_MS } from '../../edge/stream/upstream.ts';
import { type Reason, refusals } from '../../shared/refusal.ts';
import { CHECKPOINT_CHARACTERS } from '../../shared/stream/limits.ts';

const protocol = readFileSync(new URL('../../shared/stream/PROTOCOL.md', import.meta.url), 'utf8');

/** Rows of the first table whose header begins with `head`. */
function readTable(head: string): string[][] {
  const lines = protocol.split('\n');
  const first = lines.findIndex((line) => new RegExp(`^\\| ${head} +\\|`).test(line));
  const rows: string[][] = [];
  for (const line of lines.slice(first)) {
    if (!line.startsWith('|')) break;
    rows.push(
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim().replaceAll('`', '')),
    );
  }
  return rows.filter(([cell]) => !/^-+$/.test(cell ?? ''));
}

describe('the states of a session', () => {
  it('are the table of the protocol', () => {
    const [head, ...rows] = readTable('state');
    expect(head?.slice(1)).toEqual([...events]);
    expect(rows.map(([name]) => name)).toEqual([...states]);
    for (const [name, ...cells] of rows) {
      const row = transitions[name as (typeof states)[number]];
      expect(cells).toEqual(events.map((event) => row[event] ?? ''));
    }
  });

  it('can all be reached, and from each the end can', () => {
    const reach = (from: (typeof states)[number]) => {
      const seen = new Set([from]);
      for (const state of seen)
        for (const event of events) {
          const next = after(state, event);
          if (next) seen.add(next);
        }
      return seen;
    };
    expect([...reach('waiting')].sort()).toEqual([...states].sort());
    for (const state of states) expect(reach(state)).toContain('closed');
  });

  it('MUST 72: close codes of the protocol are those of the refusals', () => {
    const [, ...rows] = readTable('code');
    for (const [code, reasons] of rows) {
      if (code === '1000') continue;
      for (const reason of (reasons ?? '').split(', ')) {
        expect(`${reason} ${refusals[reason as Reason]?.close}`).toBe(`${reason} ${code}`);
      }
    }
  });

  it('bounds of the protocol are those of the limits', () => {
    const rows = new Map(readTable('bound').map(([what, value]) => [what, value]));
    const MiB = 1024 * 1024;
    expect(Object.fromEntries(rows)).toMatchObject({
      'unsettled audio kept': `${STREAM_RING_BYTES / MiB} MiB`,
      'memory of a session that no other takes': `${STREAM_RESERVED_BYTES / 1024} KiB`,
      'memory by which an isolate admits sessions': `${STREAM_EXPECTED_BYTES / 1024} KiB each`,
      'wait of a session for memory that others have': `${STREAM_STARVED_MS / 1_000} to ${(STREAM_STARVED_MS + STREAM_STARVED_MORE_MS) / 1_000} s, by chance`,
      'memory of audio of a tenant in an isolate, of all': `${STREAM_TENANT_BYTES / MiB} MiB, ${STREAM_ISOLATE_BYTES / MiB} MiB`,
      'unsettled audio sent (windowBytes)': `${STREAM_CLIENT_BYTES / MiB} MiB`,
      'audio beyond heard': `${STREAM_WINDOW_BYTES / 1024} KiB`,
      'one message of audio': `${STREAM_MESSAGE_BYTES / MiB} MiB, and what the isolate has memory for`,
      'one text message': `${STREAM_CONTROL_CHARACTERS.toLocaleString('en')} characters`,
      'resume token': `${RESUME_TOKEN_CHARACTERS.toLocaleString('en')} characters`,
      'state of a checkpoint': `${CHECKPOINT_CHARACTERS.toLocaleString('en')} characters`,
      'client away': `${STREAM_RESUME_MS / 1_000} s`,
      'client silent': `${STREAM_IDLE_MS / 1_000} s, or the token's idleSeconds if that is less`,
      'agent silent': `${STREAM_SILENCE_MS / 1_000} s`,
      'looking for the first agent, for another one': `${STREAM_FIND_MS / 1_000} s, ${STREAM_MOVE_MS / 1_000} s`,
      'the rest after end, without anything being settled': `${STREAM_FINISH_MS / 1_000} s`,
    });
    expect(rows.get('session')).toContain(STREAM_SESSION_S.toLocaleString('en'));
    expect(STREAM_CLIENT_BYTES).toBeLessThan(STREAM_PACED_BYTES);
    expect(STREAM_RELIEF_BYTES).toBeLessThan(STREAM_CLIENT_BYTES);
  });
});
