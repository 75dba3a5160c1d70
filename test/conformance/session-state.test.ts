import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { after, events, states, transitions } from '../../edge/stream/session-state.ts';
import { limits } from '../../shared/limits.ts';
import { type Reason, refusals } from '../../shared/refusal.ts';

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
      'unsettled audio kept': `${limits.streamRingBytes.value / MiB} MiB`,
      'memory of a session that no other takes': `${limits.streamReservedBytes.value / 1024} KiB`,
      'memory of audio of a tenant in an isolate, of all': `${limits.streamTenantBytes.value / MiB} MiB, ${limits.streamIsolateBytes.value / MiB} MiB`,
      'unsettled audio sent (windowBytes)': `${limits.streamClientBytes.value / MiB} MiB`,
      'audio beyond heard': `${limits.streamWindowBytes.value / 1024} KiB`,
      'one message of audio': `${limits.streamMessageBytes.value / MiB} MiB, and what the isolate has memory for`,
      'one text message': `${limits.streamControlCharacters.value.toLocaleString('en')} characters`,
      'resume token': `${limits.streamTokenCharacters.value.toLocaleString('en')} characters`,
      'state of a checkpoint': `${limits.checkpointCharacters.value.toLocaleString('en')} characters`,
      'client away': `${limits.streamResumeMs.value / 1_000} s`,
      'client silent': `${limits.streamIdleMs.value / 1_000} s, or the token's idleSeconds if that is less`,
      'agent silent': `${limits.streamSilenceMs.value / 1_000} s`,
      'looking for the first agent, for another one': `${limits.streamFindMs.value / 1_000} s, ${limits.streamMoveMs.value / 1_000} s`,
      'the rest after end, without anything being settled': `${limits.streamFinishMs.value / 1_000} s`,
    });
    expect(rows.get('session')).toContain(limits.streamSeconds.value.toLocaleString('en'));
    expect(limits.streamClientBytes.value).toBeLessThan(limits.streamPacedBytes.value);
    expect(limits.streamReliefBytes.value).toBeLessThan(limits.streamClientBytes.value);
  });
});
