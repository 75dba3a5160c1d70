// Terminal of `npm start`: a line per part while the stack starts, then a line per request. Output of the parts
// is in their log files.
import { z } from 'zod';
import { jsonOf } from '../../shared/json-text.ts';
import type { LineSource } from './logs.ts';

/** A terminal, or a stream in its place. */
export interface Screen {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

/** A request as the edge logs it (`LOG_REQUESTS`). */
const requestLine = z.object({
  event: z.literal('request'),
  request: z.string(),
  address: z.string().optional(),
  action: z.string().optional(),
  status: z.number(),
  reason: z.string().optional(),
  milliseconds: z.number(),
  model: z.string().optional(),
  audioSeconds: z.number().optional(),
  agent: z.string().optional(),
});

/** Calls of the stack's own parts, and of probes. */
const OWN = ['GET /healthz', 'GET /v1/pools/heartbeat', 'PUT /v1/release', 'POST /v1/usage'];

/** Formats a line of the edge's log that tells of a caller's request; `undefined` for any other. */
export function requestText(line: string): string | undefined {
  const { data } = requestLine.safeParse(jsonOf(line));
  if (!data || OWN.includes(data.address ?? '')) return undefined;
  const { address, action, status, reason, model, audioSeconds, agent, milliseconds, request } = data;
  const words = [
    address ?? action,
    status,
    reason,
    model,
    audioSeconds !== undefined && `${audioSeconds.toFixed(1)} s`,
    // An agent is named after its pool, with a number.
    agent && `→ ${agent.replace(/-\d+$/, '')}`,
    `${milliseconds} ms`,
    request,
  ];
  return words.filter((word) => word !== undefined && word !== false && word !== '').join(' ');
}

/** Length of the line of starting parts, with its escape codes: it must not wrap in 80 columns. */
const LINE_CHARS = 80;
/** Width of the names of parts. */
const NAME = 22;

export interface StackTerminal {
  /** Receives each line of a part's log as it is written. */
  line(part: string, text: string, source: LineSource): void;
  /** Ends the start: requests are shown from now on. */
  serving(banner: string): void;
  /** Takes the line of starting parts away. */
  clear(): void;
}

export function createTerminal(screen: Screen, verbose: boolean): StackTerminal {
  const starting = new Set<string>();
  let isServing = false;
  let isShown = false;
  const clear = () => {
    if (isShown) screen.write('\r\u001b[2K');
    isShown = false;
  };
  const print = (text: string) => {
    clear();
    screen.write(`${text}\n`);
  };
  const showStarting = () => {
    if (!screen.isTTY || isServing || starting.size === 0) return;
    const names = [...starting].map((name) => (name.startsWith('engine-') ? `${name} (loading models)` : name));
    isShown = true;
    screen.write(`\r\u001b[2K  starting ${names.join(', ')}`.slice(0, LINE_CHARS));
  };
  return {
    clear,
    line(part, text, source) {
      if (verbose) return void screen.write(`${part.padEnd(NAME)} ${text}\n`);
      if (source === 'part') {
        const request = isServing && part === 'edge' ? requestText(text) : undefined;
        if (request !== undefined) print(request);
        return;
      }
      if (text === 'starting') starting.add(part);
      else {
        starting.delete(part);
        print(`  ${part.padEnd(NAME)} ${text}`);
      }
      showStarting();
    },
    serving(banner) {
      isServing = true;
      print(banner);
    },
  };
}
