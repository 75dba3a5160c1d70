import { KiB, type Limit, MiB } from './limit.ts';

/** A request on its way in. */
export const requestLimits = {
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
