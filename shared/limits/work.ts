import { KiB, type Limit, MiB } from './limit.ts';

/** Work in the pool. */
export const workLimits = {
  audioSeconds: {
    value: 4 * 3600,
    unit: 's',
    by: 'agent',
    why: 'Longest recording of one request; also stops compressed silence that unpacks for ever.',
  },
  turnSeconds: {
    value: 1,
    unit: 's',
    by: 'agent',
    why: 'Sound decoded, resampled and listened to in one turn of the event loop: a few milliseconds of computing.',
  },
  audioRateMin: {
    value: 8_000,
    unit: 'Hz',
    by: 'agent',
    why: 'Telephone band; below it there is no speech left to recognise.',
  },
  audioRateMax: { value: 48_000, unit: 'Hz', by: 'agent', why: 'Nothing above it helps recognition.' },
  audioChannels: { value: 2, unit: 'count', by: 'agent', why: 'Mono or stereo; stereo is mixed down.' },
  mp3StrayBytes: {
    value: 64 * KiB,
    unit: 'byte',
    by: 'agent',
    why: 'Of an MP3, what is no frame, no tag and no padding: damage of a few seconds; more, and it is not the recording that was meant.',
  },
  mp3StrayShare: {
    value: 0.125,
    unit: 'ratio',
    by: 'agent',
    why: 'The same of a short one, as a share of the file.',
  },
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
  engineMetricsBytes: {
    value: MiB,
    unit: 'byte',
    by: 'agent',
    why: "Triton's page has about 2 KiB for each loaded model.",
  },
  speakChars: {
    value: 140,
    unit: 'character',
    by: 'agent',
    why: 'Spelled-out text given to a voice at once: about ten seconds, as long as the texts it was taught with.',
  },
  speakSeconds: {
    value: 40,
    unit: 's',
    by: 'agent',
    why: 'Sound of one such piece: ten seconds at half the speed, and as much again for slow voices.',
  },
  speakRateMin: { value: 0.5, unit: 'ratio', by: 'agent', why: 'Slower speech falls apart into single sounds.' },
  speakRateMax: { value: 2, unit: 'ratio', by: 'agent', why: 'Faster speech is understood by hardly anybody.' },
  transcriptWords: {
    value: 65_536,
    unit: 'count',
    by: 'edge',
    why: 'Four hours of fast speech; a transcript is held whole for formats that need it.',
  },
  answerBytes: {
    value: MiB,
    unit: 'byte',
    by: 'edge',
    why: 'An answer that comes with its length is read at once; a longer one is read as it comes.',
  },
  answerEventBytes: { value: 60 * KiB, unit: 'byte', by: 'agent', why: 'An event fits one sealed segment.' },
  oggPacketBytes: {
    value: MiB,
    unit: 'byte',
    by: 'agent',
    why: 'Longest packet of an Ogg recording that is kept, longer ones are covers and other tags: 65,535 stereo samples of 32 bits, stored as they are, take a little over half of it.',
  },
} as const satisfies Record<string, Limit>;
