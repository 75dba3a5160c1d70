// Commands of `auricle deploy`.
import type { Command } from '../command.ts';

export const deployCommands: readonly Command[] = [
  {
    name: 'deploy init',
    operands: 'ENV',
    does: 'makes the keys and settings files of an environment; never overwrites one',
    takes: ['zones', 'pools', 'domain', ['out', 'folder that the files are written to; default deploy/ENV']],
    local: true,
    more: `Writes edge.env, zones/ZONE/functions.env and functions.secrets.env, pools/NAME/agent.env, trust/ (public keys)
and keys/. Every file is readable by its owner only. It prints the settings that are left to be filled, each with
the reason. infra/KEYS.md says what each key is, how it is changed, and what breaks without it.`,
    run: async (given) => (await import('./init.ts')).initEnvironment(given),
  },
];
