import type { Limit } from './limit.ts';

/** Bounds for parts that do not answer: deadlines of calls, the circuit breaker, and keys that make a retry safe. */
export const outageLimits = {
  functionsMarginMs: {
    value: 2_000,
    unit: 'ms',
    by: 'edge',
    why: 'Time between the deadline of a call to functions and the refusal of the edge: a write that began in time, and its answer.',
  },
  storageAnswerMs: {
    value: 3_000,
    unit: 'ms',
    by: 'functions',
    why: 'One call of storage within a request of the edge. Three tries of a slow account fit, and the refusal leaves before the edge gives up.',
  },
  circuitProbeMs: {
    value: 2_500,
    unit: 'ms',
    by: 'edge',
    why: 'A probe of functions: longer than their health route waits for a store (healthAnswerMs).',
  },
  circuitPeekMs: {
    value: 50,
    unit: 'ms',
    by: 'edge',
    why: 'How long a request waits for the probe that it began: functions that are back answer sooner, and a refusal leaves within 100 ms.',
  },
  circuitFirstMs: {
    value: 1_000,
    unit: 'ms',
    by: 'edge',
    why: 'Pause before the first probe of an open circuit; it doubles with each failure.',
  },
  circuitMaxMs: {
    value: 30_000,
    unit: 'ms',
    by: 'edge',
    why: 'Longest pause between two probes: so late may a recovery be found.',
  },
  idempotencyKeyCharacters: {
    value: 255,
    unit: 'character',
    by: 'edge',
    why: 'A UUID has 36; Stripe, whose clients send such keys, takes as many.',
  },
  idempotencyKeySeconds: {
    value: 24 * 3600,
    unit: 's',
    by: 'gate',
    why: 'A key is stored for a day: as long as the address of a grant can be written to.',
  },
  idempotencyKeys: {
    value: 200_000,
    unit: 'count',
    by: 'gate',
    why: 'Keys of a tenant, 200 bytes each: ten days of its largest backlog of uploads. Beyond it the oldest go.',
  },
  idempotencyRunMs: {
    value: 15_000,
    unit: 'ms',
    by: 'gate',
    why: 'A key whose first request was lost with its isolate is free again after this: longer than a call to functions with its probe.',
  },
  idempotencySendMs: {
    value: 150_000,
    unit: 'ms',
    by: 'gate',
    why: 'The same while a file passes through the edge, from its last renewal: a read, a block and the block list fit, the latter two with three tries of 20 s each.',
  },
} as const satisfies Record<string, Limit>;
