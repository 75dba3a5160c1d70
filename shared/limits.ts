/** Who stops what goes over a bound. */
type Enforcer = 'edge' | 'gate' | 'roster' | 'agent' | 'engine' | 'functions' | 'local';

interface Limit {
  readonly value: number;
  readonly unit: 'byte' | 'ms' | 's' | 'count' | 'Hz' | 'character' | 'ratio';
  readonly by: Enforcer;
  /** What the bound protects, and why it has this size. */
  readonly why: string;
}

const KiB = 1024;
const MiB = 1024 * KiB;

/** Every bound of the system. Nothing else in the code decides how much is too much. */
export const limits = {
  // A request on its way in
  heldBodyBytes: {
    value: MiB,
    unit: 'byte',
    by: 'edge',
    why: 'A body this small is held whole, so that another pool can be tried; larger ones stream.',
  },
  bodyBytes: {
    value: 128 * MiB,
    unit: 'byte',
    by: 'edge',
    why: 'About an hour of 16 kHz 16-bit mono; longer recordings go through uploads.',
  },
  bodyIdleMs: {
    value: 20_000,
    unit: 'ms',
    by: 'edge',
    why: 'A client that sends nothing for this long holds a place another could use.',
  },
  lingerBytes: {
    value: 256 * MiB,
    unit: 'byte',
    by: 'edge',
    why: 'Of a refused body, read and thrown away: a caller that is still sending could not hear the refusal otherwise.',
  },
  lingerMs: {
    value: 10_000,
    unit: 'ms',
    by: 'edge',
    why: 'How long that may take; nothing is held meanwhile but the connection.',
  },
  jsonBodyBytes: {
    value: 64 * KiB,
    unit: 'byte',
    by: 'edge',
    why: 'No JSON request of the audio interface needs more.',
  },
  tokenCharacters: {
    value: 8 * KiB,
    unit: 'character',
    by: 'edge',
    why: 'Tokens are parsed before anybody is known; real ones are under 2 KiB.',
  },
  tokenCacheEntries: { value: 2048, unit: 'count', by: 'edge', why: 'Verified tokens kept per isolate, about 2 MiB.' },
  tokenCacheMs: {
    value: 60_000,
    unit: 'ms',
    by: 'edge',
    why: 'A revoked token works at most this long in an isolate that has seen it.',
  },
  clockSkewSeconds: {
    value: 30,
    unit: 's',
    by: 'edge',
    why: 'Clocks of issuers differ; more would stretch every expiry.',
  },
  formFields: { value: 64, unit: 'count', by: 'agent', why: 'The interface defines fewer than thirty parts.' },
  formFieldBytes: {
    value: 8 * KiB,
    unit: 'byte',
    by: 'agent',
    why: 'The longest field is a prompt of 224 tokens or a list of keywords.',
  },
  partHeaderBytes: {
    value: 8 * KiB,
    unit: 'byte',
    by: 'edge',
    why: 'Header lines of one part of a form; a longer run is not a form.',
  },

  // Choosing and reaching a pool
  attempts: { value: 2, unit: 'count', by: 'edge', why: 'One retry on another pool; more multiplies an outage.' },
  retryShare: { value: 0.1, unit: 'ratio', by: 'edge', why: 'Retries may add at most a tenth to the load of a zone.' },
  retryBurst: {
    value: 10,
    unit: 'count',
    by: 'edge',
    why: 'Retries an isolate may make before it has seen enough requests for its share to mean anything.',
  },
  loadAgeMs: {
    value: 2_000,
    unit: 'ms',
    by: 'edge',
    why: 'Age at which a report of load counts for 1/e: queues of short utterances turn over about that fast.',
  },
  latencyAgeMs: {
    value: 10_000,
    unit: 'ms',
    by: 'edge',
    why: 'Age at which an observed latency counts for 1/e, so that an agent that was slow once is tried again.',
  },
  costNoise: {
    value: 0.25,
    unit: 'ratio',
    by: 'edge',
    why: 'Two costs closer than this are the same: then slots decide, not the noise of the measurement.',
  },
  ejectFailures: { value: 5, unit: 'count', by: 'edge', why: 'Failures in a row after which an agent is left out.' },
  ejectShare: { value: 0.5, unit: 'ratio', by: 'edge', why: 'Share of failures above which an agent is left out.' },
  ejectRequests: { value: 20, unit: 'count', by: 'edge', why: 'A share of fewer requests says nothing.' },
  ejectWindowMs: { value: 10_000, unit: 'ms', by: 'edge', why: 'Requests counted together for the share of failures.' },
  ejectMs: {
    value: 10_000,
    unit: 'ms',
    by: 'edge',
    why: 'How long an agent is left out the first time; each next time is as much longer.',
  },
  ejectMaxMs: {
    value: 60_000,
    unit: 'ms',
    by: 'edge',
    why: 'Longest time left out, and how long an earlier one is remembered.',
  },
  reconnectMs: { value: 500, unit: 'ms', by: 'agent', why: 'First pause before an agent calls its roster again.' },
  reconnectMaxMs: {
    value: 10_000,
    unit: 'ms',
    by: 'agent',
    why: 'Longest such pause; a roster that is back should know its agents soon.',
  },
  snapshotAgeMs: { value: 1_000, unit: 'ms', by: 'edge', why: 'Age at which an isolate asks the roster again.' },
  snapshotWaitMs: {
    value: 500,
    unit: 'ms',
    by: 'edge',
    why: 'A roster that answers later than this is not waited for; the last snapshot serves.',
  },
  snapshotStaleMs: {
    value: 30_000,
    unit: 'ms',
    by: 'edge',
    why: 'With the roster unreachable, a snapshot this old no longer says where pools are.',
  },
  heartbeatMs: { value: 1_000, unit: 'ms', by: 'agent', why: 'How often an agent reports.' },
  heartbeatUnknownMs: {
    value: 3_000,
    unit: 'ms',
    by: 'roster',
    why: 'A report this old says nothing about load any more.',
  },
  heartbeatGoneMs: { value: 10_000, unit: 'ms', by: 'roster', why: 'A silent agent is no candidate after this.' },
  heartbeatBytes: {
    value: 64 * KiB,
    unit: 'byte',
    by: 'roster',
    why: 'A hello carries an attestation of a few KiB and at most some hundred models.',
  },
  rosterAgents: {
    value: 512,
    unit: 'count',
    by: 'roster',
    why: 'Agents per zone; a snapshot must stay small enough to read every second.',
  },
  answerStartMs: {
    value: 5_000,
    unit: 'ms',
    by: 'edge',
    why: 'An agent answers before it has read the body; one that does not is lost.',
  },
  answerSilenceMs: {
    value: 15_000,
    unit: 'ms',
    by: 'edge',
    why: 'Agents send a keepalive every 5 s; three missed ones mean the agent is lost.',
  },
  requestMs: {
    value: 3_600_000,
    unit: 'ms',
    by: 'agent',
    why: 'Work budget of a ticket: the largest body over a 300 kbit/s link, and then some.',
  },
  keepaliveMs: {
    value: 5_000,
    unit: 'ms',
    by: 'agent',
    why: 'Under the 10 s the protocol promises and any proxy idle timeout.',
  },

  // Sealing
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
  ticketSeconds: {
    value: 60,
    unit: 's',
    by: 'agent',
    why: 'A ticket is used at once; the agent remembers its id this long.',
  },
  replayEntries: {
    value: 65_536,
    unit: 'count',
    by: 'agent',
    why: 'Request ids remembered; over a thousand requests a second for a minute.',
  },

  // Work in the pool
  audioSeconds: {
    value: 4 * 3600,
    unit: 's',
    by: 'agent',
    why: 'Longest recording of one request; also stops compressed silence that unpacks for ever.',
  },
  audioRateMin: {
    value: 8_000,
    unit: 'Hz',
    by: 'agent',
    why: 'Telephone band; below it there is no speech left to recognise.',
  },
  audioRateMax: { value: 48_000, unit: 'Hz', by: 'agent', why: 'Nothing above it helps recognition.' },
  audioChannels: { value: 2, unit: 'count', by: 'agent', why: 'Mono or stereo; stereo is mixed down.' },
  utteranceSeconds: {
    value: 20,
    unit: 's',
    by: 'agent',
    why: 'Longest piece given to the engine at once; longer speech is cut at its quietest point.',
  },
  utterancesInFlight: {
    value: 4,
    unit: 'count',
    by: 'agent',
    why: 'Pieces of one request at the engine together; reading the body waits meanwhile.',
  },
  queuedUtterances: {
    value: 256,
    unit: 'count',
    by: 'agent',
    why: 'Work waiting for an engine slot, all requests together; more is refused as busy.',
  },
  requestsInFlight: {
    value: 64,
    unit: 'count',
    by: 'agent',
    why: 'Requests open at one agent; each holds at most 8 MiB of audio: utterances in flight and the one being cut.',
  },
  engineMs: {
    value: 30_000,
    unit: 'ms',
    by: 'agent',
    why: 'An inference of 20 s of audio takes well under a second; this is a lost engine.',
  },
  engineAnswerBytes: {
    value: 16 * MiB,
    unit: 'byte',
    by: 'agent',
    why: '20 s of log probabilities over 4,096 tokens every 40 ms take 8 MiB.',
  },
  transcriptWords: {
    value: 65_536,
    unit: 'count',
    by: 'edge',
    why: 'Four hours of fast speech; a transcript is held whole for formats that need it.',
  },
  answerEventBytes: { value: 60 * KiB, unit: 'byte', by: 'agent', why: 'An event fits one sealed segment.' },

  // Tenants and the record
  requestsPerMinute: { value: 600, unit: 'count', by: 'gate', why: 'Used when a token names no allowance of its own.' },
  requestsAtOnce: { value: 32, unit: 'count', by: 'gate', why: 'Used when a token names no allowance of its own.' },
  audioSecondsPerDay: {
    value: 360_000,
    unit: 's',
    by: 'gate',
    why: 'Used when a token names no allowance of its own: 100 hours.',
  },
  leaseMs: { value: 300_000, unit: 'ms', by: 'gate', why: 'A place whose holder vanished comes back after this.' },
  auditWaitMs: {
    value: 250,
    unit: 'ms',
    by: 'edge',
    why: 'A strict tenant is refused rather than served unrecorded; nobody waits longer for the record.',
  },
  gateSteps: {
    value: 64,
    unit: 'count',
    by: 'edge',
    why: 'Steps that wait in an isolate for a call to their gate; one more and a call is made for them.',
  },
  gateLingerMs: {
    value: 20,
    unit: 'ms',
    by: 'edge',
    why: 'How long such a step waits for another call; a place comes back that much later, and nobody feels it.',
  },
  auditBacklogEvents: {
    value: 1_000,
    unit: 'count',
    by: 'edge',
    why: 'Events an isolate keeps while a gate is unreachable, about 1 MiB; then the oldest go, with a gap event.',
  },
  auditEventBytes: {
    value: 16 * KiB,
    unit: 'byte',
    by: 'gate',
    why: 'A leaf of the log; larger events are a bug and are replaced by their digest.',
  },
  auditOutboxEvents: {
    value: 200_000,
    unit: 'count',
    by: 'gate',
    why: 'About 200 MiB of Durable Object storage; beyond it strict tenants are refused, others lose the oldest with a gap event.',
  },
  auditPageEvents: {
    value: 500,
    unit: 'count',
    by: 'edge',
    why: 'Events of one page of an outbox; at 16 KiB each still a small answer.',
  },
  agentOutboxEvents: {
    value: 4_096,
    unit: 'count',
    by: 'agent',
    why: 'Audit events of an agent that waits for its roster; beyond it the oldest give way to a gap event.',
  },
  anonymousDenialsPerSecond: {
    value: 10,
    unit: 'count',
    by: 'edge',
    why: 'Refusals of unknown callers recorded one by one; the rest are counted in the next record.',
  },

  // The embedded engine
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

export type LimitName = keyof typeof limits;
