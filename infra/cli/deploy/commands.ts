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
  {
    name: 'deploy check',
    operands: '[ENV]',
    does: 'checks a deployment end to end: TLS, token, pools, a transcription, an upload, an audit receipt',
    takes: [
      ['audio', 'recording to send; default a clip of the tests'],
      ['model', 'model to use; default the first that transcribes'],
      'zone',
      ['out', 'folder of the environment; default deploy/ENV'],
    ],
    local: ({ operands }) => operands.length === 2,
    more: `With ENV it uses the address, the tokens and the log keys of the environment's folder, and checks each zone;
otherwise --edge and --token. The exit code is 1 when a check failed.`,
    run: async (given, _, token) => (await import('./check.ts')).checkDeployment(given, token),
  },
];
