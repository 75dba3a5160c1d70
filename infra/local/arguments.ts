// What follows `npm start --`.
import path from 'node:path';
import { parseArgs } from 'node:util';
import { ROOT } from './root.ts';

export const PORT = 8787;

export const USAGE = `npm start [-- --port N --state DIR --parts A,B --quiet]

  --port N     port of the edge on 127.0.0.1 (default ${PORT}; 0 chooses a free one)
  --state DIR  folder of everything the stack keeps (default .auricle)
  --parts A,B  only these parts, for work on one of them (default all)
  --quiet      no output of the parts; it is in DIR/logs either way
`;

export type Arguments = { port: number; state: string; quiet: boolean; help: boolean; parts?: string[] };

export function readArguments(given: string[]): Arguments | { problem: string } {
  try {
    const { values } = parseArgs({
      args: given,
      options: {
        port: { type: 'string', default: String(PORT) },
        state: { type: 'string', default: path.join(ROOT, '.auricle') },
        parts: { type: 'string' },
        quiet: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
    const port = Number(values.port);
    if (!/^\d+$/.test(values.port) || port > 65_535) return { problem: `--port ${values.port} is not a port number` };
    const parts = values.parts === undefined ? {} : { parts: values.parts.split(',') };
    return { port, state: values.state, quiet: values.quiet, help: values.help, ...parts };
  } catch (error) {
    return { problem: (error as Error).message };
  }
}
