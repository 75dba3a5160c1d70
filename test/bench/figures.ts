/** A measured figure worth showing: a name in `results/FILE.json`, what it measures, and how it is printed. */
export interface Figure {
  readonly name: string;
  readonly what: string;
  readonly decimals: number;
  /** The stored number is a ratio; it is printed times 100. */
  readonly percent?: true;
}

/** Rows of the validity bench: the mean waits of each class of a scenario, predicted and measured. */
const waitsOf = (key: string, scenario: string, kinds: readonly string[]): Figure[] => [
  ...kinds.flatMap((kind) => [
    { name: `${key}_${kind}_predicted_ms`, what: `${scenario}, ${kind}: mean wait predicted, ms`, decimals: 0 },
    { name: `${key}_${kind}_measured_ms`, what: 'the same on real processes', decimals: 0 },
  ]),
  { name: `${key}_ratio`, what: `${scenario}: measured over predicted, median of rounds`, decimals: 2 },
  { name: `${key}_ratio_low`, what: 'the lowest round', decimals: 2 },
  { name: `${key}_ratio_high`, what: 'the highest', decimals: 2 },
];
const allClasses = ['all', 'realtime', 'interactive', 'default', 'batch'];

/** Figures of each result file, in the order in which `RESULTS.md` shows them. */
export const figures: Readonly<Record<string, readonly Figure[]>> = {
  windows: [
    {
      name: 'cpu_ratio_vs_none',
      what: "CPU of the engine per utterance with windows of 50 and 500 ms, over the engine's own batching alone",
      decimals: 2,
    },
    { name: 'batch_none', what: 'utterances of a batch without windows', decimals: 2 },
    { name: 'batch_windows', what: 'utterances of a batch with them', decimals: 2 },
    { name: 'held_urgent_ms', what: 'time for which windows hold urgent work, median in ms', decimals: 0 },
    { name: 'held_long_ms', what: 'the same for batch work', decimals: 0 },
  ],
  wer: [
    {
      name: 'wer_espeak',
      what: 'word error rate, INT8, espeak-ng voices and sentences unseen in training (100 settings × 20)',
      decimals: 1,
      percent: true,
    },
    {
      name: 'wer_espeak_int8_stream_lm',
      what: 'the same as a live stream, in windows of 335 ms',
      decimals: 1,
      percent: true,
    },
    {
      name: 'wer_espeak_int8_greedy',
      what: 'the whole recordings without lexicon and language model',
      decimals: 1,
      percent: true,
    },
    {
      name: 'wer_flite',
      what: 'word error rate, flite voices known from training, unseen sentences',
      decimals: 1,
      percent: true,
    },
    {
      name: 'wer_flite_heldout',
      what: 'word error rate, a flite voice kept out of training',
      decimals: 1,
      percent: true,
    },
    { name: 'rtf_int8', what: 'seconds of computing per second of speech, network, one thread', decimals: 4 },
    { name: 'rtf_stream', what: 'the same as a live stream', decimals: 4 },
    {
      name: 'lag_shown_p90_ms',
      what: 'from the last letter of a word to its final spelling in an interim result, computing not counted, p90 in ms',
      decimals: 0,
    },
  ],
  voice: [
    {
      name: 'voice_wer',
      what: 'word errors that the recogniser hears of `voice-en`, three kinds of text it was not taught with',
      decimals: 1,
      percent: true,
    },
    { name: 'teacher_wer', what: 'the same of its teacher, flite', decimals: 1, percent: true },
    { name: 'voice_rtf', what: 'seconds of computing per second of its speech, one core', decimals: 3 },
  ],
  speech: [
    {
      name: 'speech_first_ratio_wav_8',
      what: 'time to the first sound of eight sentences, over that to the whole sound',
      decimals: 2,
    },
    { name: 'speech_first_ratio_wav_32', what: 'the same of 32 sentences', decimals: 2 },
    { name: 'speech_first_ms_wav_32', what: 'time to that first sound in the agent, ms', decimals: 0 },
    { name: 'speech_first_ms_opus_32', what: 'the same as Opus', decimals: 0 },
  ],
  natural: [
    {
      name: 'natural_wer',
      what: 'word errors of `whisper-tiny-en` on 100 prompts of a person',
      decimals: 1,
      percent: true,
    },
    { name: 'peer_wer', what: 'the same of faster-whisper with the same weights', decimals: 1, percent: true },
    { name: 'natural_rtf', what: 'seconds of one core per second of sound, agent and engine', decimals: 3 },
    { name: 'natural_rtf_vs_peer', what: 'the same, over that of faster-whisper', decimals: 2 },
    { name: 'natural_bytes', what: 'bytes of the model on disk', decimals: 0 },
    {
      name: 'natural_live_p90_ms',
      what: 'live at an idle engine, from the end of a word to its final spelling, p90 in ms',
      decimals: 0,
    },
  ],
  precision: [
    {
      name: 'time_vs_fp32_int8_static',
      what: 'the reference network with 8 bits by our quantiser, static: time, over 32 bits',
      decimals: 3,
    },
    { name: 'time_vs_fp32_int8_dynamic', what: 'the same, dynamic', decimals: 3 },
    { name: 'wer_int8_static', what: 'its word errors, static (32 bits: 5.6 %)', decimals: 1, percent: true },
    {
      name: 'memory_vs_fp32_int8_static',
      what: 'memory of a process that holds it, static, over 32 bits',
      decimals: 2,
    },
  ],
  start: [
    {
      name: 'start_to_transcript_s',
      what: 'from `npm start` on an empty state folder to the first transcript, seconds',
      decimals: 2,
    },
    {
      name: 'ratio_vs_wrangler_dev',
      what: 'the same, compared with `wrangler dev` starting an empty Worker',
      decimals: 2,
    },
  ],
  front: [
    { name: 'cpu_us_320k', what: 'CPU of the edge per request of 320 kB, microseconds', decimals: 0 },
    { name: 'cpu_us_10m', what: 'the same for 10 MB', decimals: 0 },
    { name: 'cpu_vs_floor_32k', what: 'CPU of the edge over the floor, 32 kB (the target is 1.25)', decimals: 2 },
    { name: 'cpu_vs_floor_320k', what: 'the same for 320 kB', decimals: 2 },
    { name: 'cpu_vs_floor_10m', what: 'the same for 10 MB', decimals: 2 },
    { name: 'portkey_vs_cpu_32k', what: 'CPU of Portkey on Node over the edge, 32 kB (the target is 2)', decimals: 2 },
    { name: 'portkey_vs_cpu_320k', what: 'the same for 320 kB (the target is 2)', decimals: 2 },
    { name: 'portkey_vs_cpu_10m', what: 'the same for 10 MB (the target is 1.3)', decimals: 2 },
    {
      name: 'added_p50_ms_320k',
      what: "latency over a bare proxy's at 200 requests a second, 320 kB, p50 in ms",
      decimals: 1,
    },
    { name: 'added_p99_ms_320k', what: 'the same, p99', decimals: 1 },
  ],
  streams: [
    {
      name: 'agent_streams_held',
      what: 'live streams that one worker of an agent held for a minute without a lost frame, engine double (the target is 300)',
      decimals: 0,
    },
    { name: 'agent_added_p50_ms', what: 'time added to their interims at the median, ms', decimals: 1 },
    { name: 'agent_added_p99_ms', what: 'the same, p99', decimals: 0 },
  ],
  batch: [
    {
      name: 'files_per_s',
      what: 'uploads: recordings of 2.7 s through the whole local stack, engine double, files a second',
      decimals: 1,
    },
    { name: 'audio_hours_per_hour', what: 'the same for recordings of an hour: hours of sound an hour', decimals: 0 },
    { name: 'agent_mb_for_an_hour', what: "memory of the agent for an hour's recording, MB above idle", decimals: 1 },
    { name: 'functions_mb_for_an_hour', what: 'memory of the functions for it', decimals: 1 },
    { name: 'dollars_per_1000', what: 'dollars for 1,000 uploads by public prices, without the pool', decimals: 2 },
  ],
  switch: [
    {
      name: 'switch_ram_ms',
      what: 'switch of a revision of 500 MB under 50 requests a second, embedded engine, from memory, ms (the target is 200)',
      decimals: 0,
    },
    { name: 'switch_ssd_ms', what: 'the same from the store on disk', decimals: 0 },
    { name: 'switch_blob_ms', what: 'the same from a blob store on this machine', decimals: 0 },
    { name: 'failed_requests', what: 'requests that failed in the three (the target is 0)', decimals: 0 },
    { name: 'failed_in_place', what: 'requests that fail while the engine unloads and loads in place', decimals: 0 },
  ],
  tiers: [
    {
      name: 'stall_vs_lru',
      what: 'tiers of the agent, simulated: seconds that requests wait for loads, over LRU, three machines (the target is 0.7)',
      decimals: 2,
    },
    {
      name: 'stall_vs_oracle',
      what: 'the same over an oracle that loads on demand and has a page cache, as LRU has',
      decimals: 2,
    },
    { name: 'stall_vs_gdsf', what: 'the same over GDSF', decimals: 2 },
    { name: 'stall_vs_lru_without_ram', what: 'over LRU, the machine without memory for files', decimals: 2 },
    {
      name: 'stall_vs_lru_with_ram',
      what: 'over LRU, the machine with 12 GB on its device and 20 GB of memory',
      decimals: 2,
    },
  ],
  hedging: [
    {
      name: 'p99_none',
      what: 'simulated p99 with a second attempt for 2 % of requests at the p95, over none: no fault',
      decimals: 2,
    },
    { name: 'p99_slow', what: 'the same, one of six agents five times slower for a minute', decimals: 2 },
    { name: 'p99_still', what: 'one agent stands still for 20 s', decimals: 2 },
    { name: 'p99_jitter', what: '2 % of services take ten times as long at any agent', decimals: 2 },
    { name: 'won_none', what: 'second attempts that answer first, without a fault', decimals: 2 },
  ],
  validity: [
    ...waitsOf('steady', 'simulation and real processes, steady load', allClasses),
    ...waitsOf('slow', 'one pool three times slower for 12 s', allClasses),
    ...waitsOf('overload', 'twice the load for 8 s', ['all', 'realtime', 'batch']),
    {
      name: 'largest_deviation',
      what: 'largest deviation of these waits, rounds pooled (the target is 20 %)',
      decimals: 0,
      percent: true,
    },
  ],
  routing: [
    { name: 'pick_us', what: 'both attempts of a request in a zone of 500 agents, µs', decimals: 0 },
    { name: 'pick_vs_two_choice', what: 'the same, over a plain two-choice of the same entries', decimals: 1 },
    { name: 'explain_us', what: 'an explanation of such a choice, at most 32 a second of an isolate, µs', decimals: 0 },
    {
      name: 'roster_second_ms',
      what: 'verifying a report of each of 500 agents, which come each second, ms',
      decimals: 0,
    },
    { name: 'snapshot_ms', what: 'a snapshot of them for an isolate, serialised and read, ms', decimals: 1 },
    { name: 'snapshot_kb', what: 'its size, kB', decimals: 0 },
  ],
  simulate: [
    {
      name: 'realtime_in_deadline',
      what: 'routing simulated at twice the load of sixty pools: realtime requests that wait at most 0.3 s (the target is 95 %)',
      decimals: 1,
      percent: true,
    },
    { name: 'realtime_in_deadline_plus_minus', what: 'its 95 % confidence interval, ±', decimals: 1, percent: true },
    {
      name: 'goodput',
      what: 'work answered in time, of what the fleet can do (the target is 95 %)',
      decimals: 1,
      percent: true,
    },
    { name: 'goodput_plus_minus', what: 'its 95 % confidence interval, ±', decimals: 1, percent: true },
    {
      name: 'wait_vs_oracle',
      what: 'time to the answer at 80 % load, over an oracle that knows every queue (the target is 1.2)',
      decimals: 2,
    },
    { name: 'streams_refused', what: 'live streams refused at 90 % of all places', decimals: 2, percent: true },
    { name: 'streams_refused_two_choices', what: 'the same by a plain two-choice draw', decimals: 2, percent: true },
    { name: 'residency_breaches', what: 'attempts outside the zones of a tenant, all scenarios', decimals: 0 },
    { name: 'million_streams_cpu_s', what: 'CPU of a million simulated streams, s', decimals: 0 },
  ],
  audit: [
    {
      name: 'events_per_s',
      what: 'events a second into one log, storage emulator in memory (the target is 3000)',
      decimals: 0,
    },
    { name: 'ratio_vs_append', what: 'the same, over plain appends to the same emulator', decimals: 2 },
    {
      name: 'publish_ms_p99',
      what: 'from an event to its published checkpoint at 200 events a second, p99 in ms (the target is 3000)',
      decimals: 0,
    },
    {
      name: 'ack_added_ms_p50',
      what: 'what a record on disk adds to an answer, median in ms (the target is 5)',
      decimals: 1,
    },
    {
      name: 'verify_cpu_s',
      what: 'verifying a log of a million entries, seconds of CPU (the target is 15)',
      decimals: 1,
    },
    { name: 'verify_mb', what: 'memory for it, MB (the target is 200)', decimals: 0 },
    {
      name: 'export_verify_cpu_s_per_million',
      what: '`node verify.mjs` on an export, everything disclosed: seconds of CPU for a million entries',
      decimals: 0,
    },
    { name: 'export_formats_verify_cpu_s_per_million', what: 'the same with all five derived formats', decimals: 0 },
    { name: 'export_formats_verify_mb', what: 'memory for that, MB', decimals: 0 },
  ],
};
