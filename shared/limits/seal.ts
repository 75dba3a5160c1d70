import { KiB, type Limit } from './limit.ts';

/** Sealing, attestation and tickets. */
export const sealLimits = {
  sealSegmentBytes: {
    value: 64 * KiB,
    unit: 'byte',
    by: 'edge',
    why: 'Small enough to start work early, large enough that framing costs 0.03 %.',
  },
  sealRecordBytes: {
    value: 64 * KiB + 64,
    unit: 'byte',
    by: 'agent',
    why: 'One segment with SFrame header (at most 17), tag (16), flag and length.',
  },
  sealSetupMs: {
    value: 600_000,
    unit: 'ms',
    by: 'edge',
    why: 'One HPKE set-up serves an isolate and an agent at most this long.',
  },
  sealSetups: {
    value: 1_024,
    unit: 'count',
    by: 'agent',
    why: 'HPKE set-ups remembered, one per isolate; forgetting one costs a key agreement, never a request.',
  },
  sealKeys: {
    value: 4,
    unit: 'count',
    by: 'agent',
    why: 'Attested keys kept at once: the newest, and older ones an edge may still hold.',
  },
  sealFrames: {
    value: 2 ** 24,
    unit: 'count',
    by: 'agent',
    why: 'Frames under one key, far inside the limits of GCM.',
  },
  laneSeconds: {
    value: 601,
    unit: 's',
    by: 'agent',
    why: 'Life of the ticket of a lane: as long as a set-up may be used, rounded up.',
  },
  laneRequests: {
    value: 2 ** 24,
    unit: 'count',
    by: 'agent',
    why: 'Requests of one lane: with sealFrames each, counters stay exact numbers, and GCM far inside its limits.',
  },
  attestationCharacters: {
    value: 16 * KiB,
    unit: 'character',
    by: 'edge',
    why: 'Attestation tokens are parsed before their sender is known; real ones are 4 to 8 KiB.',
  },
  attestationSeconds: {
    value: 8 * 3600,
    unit: 's',
    by: 'edge',
    why: 'Life of an Azure attestation token; a measurement older than that says little about what runs now.',
  },
  releaseSeconds: {
    value: 60,
    unit: 's',
    by: 'functions',
    why: "Age of an agent's signed request for the key of its zone; the answer can be opened by that agent only.",
  },
  attestationMs: {
    value: 30_000,
    unit: 'ms',
    by: 'agent',
    why: 'An attestation sidecar asks the processor and an authority; one that takes longer is asked again.',
  },
  ticketSeconds: {
    value: 60,
    unit: 's',
    by: 'agent',
    why: 'A ticket is used at once; the agent remembers its id this long.',
  },
  ticketBudgetMs: {
    value: 24 * 3_600_000,
    unit: 'ms',
    by: 'agent',
    why: 'Largest work budget a ticket may name: far over what edges give, and still a time a timer can wait.',
  },
  encapsulatedCharacters: {
    value: 512,
    unit: 'character',
    by: 'agent',
    why: 'An encapsulated key as base64url; P-256 takes 87, larger curves under 200.',
  },
  replayEntries: {
    value: 65_536,
    unit: 'count',
    by: 'agent',
    why: 'Request ids remembered; over a thousand requests a second for a minute.',
  },
} as const satisfies Record<string, Limit>;
