// Outages as data: the parts of a stack that stop or die, alone and together, and for how long.
import type { PartName } from '../../../../infra/local/part.ts';
import { pools } from '../../../../infra/local/pools.ts';

export type Fault =
  /** SIGSTOP, then SIGCONT after `seconds`. */
  | { readonly kind: 'stopped'; readonly seconds: number }
  /** SIGKILL, one part after another with this pause; the supervisor starts each again. */
  | { readonly kind: 'killed'; readonly pauseSeconds: number }
  /** SIGKILL, with no replacement for `seconds`. */
  | { readonly kind: 'absent'; readonly seconds: number };

export interface Scenario {
  readonly name: string;
  readonly parts: readonly PartName[];
  readonly fault: Fault;
}

const eachPool = (part: 'agent' | 'engine'): PartName[] => pools.map(({ name }) => `${part}-${name}`);
const firstPool = (part: 'agent' | 'engine'): PartName[] => eachPool(part).slice(0, 1);

/** A part stopped for 10 s and for 60 s, and killed. */
const eachFault = (name: string, parts: readonly PartName[] = [name]): Scenario[] => [
  { name: `${name} stopped for 10 s`, parts, fault: { kind: 'stopped', seconds: 10 } },
  { name: `${name} stopped for 60 s`, parts, fault: { kind: 'stopped', seconds: 60 } },
  { name: `${name} killed`, parts, fault: { kind: 'killed', pauseSeconds: 0 } },
];

/** Scenarios by test file. Each file has about the same duration. */
export const groups = {
  storage: [...eachFault('functions'), ...eachFault('blob'), ...eachFault('sqs')],
  agents: [
    ...eachFault('one agent', firstPool('agent')),
    ...eachFault('both agents', eachPool('agent')),
    ...eachFault('release'),
  ],
  engines: [
    ...eachFault('one engine', firstPool('engine')),
    ...eachFault('both engines', eachPool('engine')),
    ...eachFault('edge'),
  ],
  together: [
    {
      name: 'blob, sqs, functions killed within 20 s',
      parts: ['blob', 'sqs', 'functions'],
      fault: { kind: 'killed', pauseSeconds: 8 },
    },
    {
      name: 'functions and blob stopped for 60 s',
      parts: ['functions', 'blob'],
      fault: { kind: 'stopped', seconds: 60 },
    },
    { name: 'both engines absent for 60 s', parts: eachPool('engine'), fault: { kind: 'absent', seconds: 60 } },
  ],
} as const satisfies Record<string, readonly Scenario[]>;
