import { KiB, type Limit, MiB } from './limit.ts';

/** A request on its way in. */
export const requestLimits = {
  heldBodyBytes: {
    value: MiB,
    unit: 'byte',
    by: 'edge',
    why: 'A body this small is held whole, so that another pool can be tried; larger ones stream.',
  },
  heldBytesInFlight: {
    value: 32 * MiB,
    unit: 'byte',
    by: 'edge',
    why: 'Bodies held by one isolate, all requests together; their buffers are at most twice that, and it has 128 MB.',
  },
  heldMs: {
    value: 120_000,
    unit: 'ms',
    by: 'edge',
    why: 'A body that has not grown for this long is counted no more: its request may have vanished with its caller.',
  },
  hintsMs: {
    value: 45_000,
    unit: 'ms',
    by: 'edge',
    why: 'For a form to name its model: heldBodyBytes over a 300 kbit/s link take 28 s; slower ones can use a header.',
  },
  bodyBytes: {
    value: 128 * MiB,
    unit: 'byte',
    by: 'edge',
    why: 'About an hour of 16 kHz 16-bit mono; longer recordings go through uploads.',
  },
  bodyReadBytes: {
    value: KiB,
    unit: 'byte',
    by: 'edge',
    why: 'Worth waiting for in one read: a body that trickles in byte by byte would cost a hundred times its size to hold.',
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
  formBytes: {
    value: 30 * KiB,
    unit: 'byte',
    by: 'agent',
    why: 'All text fields of a form as JSON: they travel back in one event, which has room for twice as much.',
  },
  partHeaderBytes: {
    value: 8 * KiB,
    unit: 'byte',
    by: 'edge',
    why: 'Header lines of one part of a form; a longer run is not a form.',
  },
  partHeaders: {
    value: 16,
    unit: 'count',
    by: 'agent',
    why: 'Header lines of one part of a form; real ones have three.',
  },
  contentTypeCharacters: {
    value: 1_024,
    unit: 'character',
    by: 'agent',
    why: 'The type of a form is its name and a boundary of at most 70 characters (RFC 2046).',
  },
} as const satisfies Record<string, Limit>;
