import { type Limit, MiB } from './limit.ts';

/** The embedded engine. */
export const engineLimits = {
  engineBodyBytes: {
    value: 64 * MiB,
    unit: 'byte',
    by: 'engine',
    why: "One request body, also after decompression; Triton's default.",
  },
  engineBodyBytesInFlight: {
    value: 256 * MiB,
    unit: 'byte',
    by: 'engine',
    why: 'All bodies being read or inferred; beyond it a request is told 503.',
  },
  engineQueuedRequests: {
    value: 1024,
    unit: 'count',
    by: 'engine',
    why: "Waiting in one model's queue where its configuration names no maximum; 0 means unlimited there.",
  },
  engineSequences: {
    value: 4096,
    unit: 'count',
    by: 'engine',
    why: "Sequences of one model version at a time, over all its instances; what comes beyond waits as Triton's backlog does.",
  },
  engineStateBytes: {
    value: 2048 * MiB,
    unit: 'byte',
    by: 'engine',
    why: 'Implicit state of one model version when every sequence it may hold is there: a model that could take more does not load, so that nothing fails halfway through a sentence.',
  },
  engineConnections: {
    value: 512,
    unit: 'count',
    by: 'engine',
    why: 'Open client connections; the kernel refuses more.',
  },
  engineHeaderMs: { value: 10_000, unit: 'ms', by: 'engine', why: 'For request headers to arrive.' },
  engineRequestMs: { value: 120_000, unit: 'ms', by: 'engine', why: 'For a whole request body to arrive.' },
  engineKeepAliveMs: {
    value: 65_000,
    unit: 'ms',
    by: 'engine',
    why: 'An idle connection is kept longer than clients keep theirs, so that they close first.',
  },
  engineInstances: {
    value: 16,
    unit: 'count',
    by: 'engine',
    why: 'Threads of one model: each holds the whole network in memory.',
  },
  engineThreads: { value: 16, unit: 'count', by: 'engine', why: 'Threads inside one instance.' },
  modelConfigBytes: { value: MiB, unit: 'byte', by: 'engine', why: 'A config.pbtxt; real ones are a few KiB.' },
  repositoryModels: {
    value: 256,
    unit: 'count',
    by: 'engine',
    why: 'Directories of a model repository that are looked at.',
  },
  ensembleSteps: { value: 64, unit: 'count', by: 'engine', why: 'Steps of one ensemble.' },
  warmupElements: { value: 64 * MiB, unit: 'count', by: 'engine', why: 'Values in one warm-up tensor.' },
  warmupCount: { value: 100, unit: 'count', by: 'engine', why: 'Executions of one warm-up sample.' },
  engineDrainMs: {
    value: 10_000,
    unit: 'ms',
    by: 'engine',
    why: 'Running inferences get this long to finish when the process stops.',
  },
  engineGoodbyeMs: {
    value: 1_000,
    unit: 'ms',
    by: 'engine',
    why: 'The last answers reach their clients in this after that.',
  },
} as const satisfies Record<string, Limit>;
