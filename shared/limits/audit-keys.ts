import type { Limit } from './limit.ts';

/** Keys of the audit log: how many there are of what name, and one that a vault keeps. */
export const auditKeysLimits = {
  auditVaultMs: {
    value: 2_500,
    unit: 'ms',
    by: 'functions',
    why: 'How long a checkpoint waits for the signature of a vault, with tokens and further tries; then it is published without. A vault needs 20 to 200 ms.',
  },
  auditVaultTries: {
    value: 3,
    unit: 'count',
    by: 'functions',
    why: 'Questions to a vault for one signature: what is refused for too many is asked again, and not for ever.',
  },
  auditVaultPauseMs: {
    value: 100,
    unit: 'ms',
    by: 'functions',
    why: 'Pause before the second question, twice as long before the third; a `Retry-After` of the vault counts instead.',
  },
  auditVaultRestMs: {
    value: 10_000,
    unit: 'ms',
    by: 'functions',
    why: 'How long a vault that failed is not asked: a log that commits once a second must not wait for it each time.',
  },
  auditKeyYears: {
    value: 50,
    unit: 'count',
    by: 'functions',
    why: 'Keys of the logs of all years that one setting names: one a year, some that gave way within one, of decades.',
  },
  auditWitnessKeys: {
    value: 8,
    unit: 'count',
    by: 'edge',
    why: 'Keys of one log that a witness knows: each is tried on every checkpoint, and a log has one of each type, and those before.',
  },
  auditNameCharacters: {
    value: 256,
    unit: 'character',
    by: 'edge',
    why: 'Name of a log or of a witness, an address without scheme: it stands in every signature.',
  },
} as const satisfies Record<string, Limit>;
