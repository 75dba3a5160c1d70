import { KiB, type Limit, MiB } from './limit.ts';

/** Tensors that callers send to a model themselves (KServe v2). */
export const callLimits = {
  callBodyBytes: {
    value: 64 * MiB,
    unit: 'byte',
    by: 'agent',
    why: "One request, unpacked: what the embedded engine takes, and Triton's default.",
  },
  callBytesInFlight: {
    value: 256 * MiB,
    unit: 'byte',
    by: 'agent',
    why: 'Such requests that one agent holds, all together: a message can be checked only as a whole.',
  },
  callJsonBytes: {
    value: 4 * MiB,
    unit: 'byte',
    by: 'agent',
    why: 'JSON of one message: it is read and written in one go, some tens of milliseconds. Larger tensors go as binary data.',
  },
  callJsonLevels: {
    value: 64,
    unit: 'count',
    by: 'agent',
    why: 'Arrays and objects inside one another in such JSON: a tensor has callDimensions of them. Seen before it is parsed, as parsers go down level by level.',
  },
  callJsonMembers: {
    value: 16_384,
    unit: 'count',
    by: 'agent',
    why: 'Objects of such JSON and what they name, together: all tensors and parameters that a request may have come to under 10,000. 400,000 of them fit into callJsonBytes and take a parser two seconds.',
  },
  callJsonArrays: {
    value: 262_144,
    unit: 'count',
    by: 'agent',
    why: 'Arrays of such JSON: rows of tensors that are written nested. Parsed in a tenth of a second.',
  },
  callMs: {
    value: 120_000,
    unit: 'ms',
    by: 'agent',
    why: 'For a model to answer: any model may be behind such a request, and a slow one is not a lost one.',
  },
  callReadMs: {
    value: 15_000,
    unit: 'ms',
    by: 'agent',
    why: 'For a piece of an answer to be taken: a caller that does not read holds memory, and of a stream a slot of the engine.',
  },
  callTensors: { value: 64, unit: 'count', by: 'agent', why: 'Inputs or outputs of one request; models have a few.' },
  callDimensions: {
    value: 32,
    unit: 'count',
    by: 'agent',
    why: 'Of the shape of a tensor: what frameworks have; shapes are repeated in what is said of them.',
  },
  callBytesElements: {
    value: 65_536,
    unit: 'count',
    by: 'agent',
    why: 'Elements of a BYTES tensor: the texts of a large batch. Each is handled by itself, so that many empty ones cost far more than their bytes.',
  },
  callParameters: {
    value: 64,
    unit: 'count',
    by: 'agent',
    why: 'Parameters of one request, of a tensor in it or of an output it asks for; clients send under ten.',
  },
  callTextCharacters: {
    value: 256,
    unit: 'character',
    by: 'agent',
    why: 'The id of a request, the id of a sequence, the name of a tensor; engines copy them into every answer.',
  },
  callFrameBytes: {
    value: MiB,
    unit: 'byte',
    by: 'agent',
    why: 'One frame of a generated stream; a token takes a hundred bytes, an image of a model less than this.',
  },
  callWholeBytes: {
    value: 256 * KiB,
    unit: 'byte',
    by: 'edge',
    why: 'An answer this small is waited for whole: a pool that is lost before its end can be replaced.',
  },
  sequencesOpen: {
    value: 1_024,
    unit: 'count',
    by: 'agent',
    why: 'Sequences that callers have open at one agent; engines have room for a few hundred at most.',
  },
  sequencesOfTenant: {
    value: 128,
    unit: 'count',
    by: 'agent',
    why: 'Of those, of one tenant: nobody can take all places.',
  },
  sequenceSteps: {
    value: 16,
    unit: 'count',
    by: 'agent',
    why: 'Requests of one sequence that wait for the one before; clients that send faster than the model are told so.',
  },
  sequenceIdleShare: {
    value: 0.8,
    unit: 'ratio',
    by: 'agent',
    why: "Of the engine's own idle time: the agent ends a sequence that nobody continues before the engine forgets it.",
  },
  sequenceEndMs: { value: 5_000, unit: 'ms', by: 'agent', why: 'For the end of such a sequence to reach the engine.' },
} as const satisfies Record<string, Limit>;
