import { KiB, MiB } from '../bytes.ts';

/** Body that is buffered whole, so that another pool can be tried; larger ones stream. */
export const BUFFERED_BODY_BYTES = MiB;
/** Recording in one request: about an hour of 16 kHz 16-bit mono; longer recordings go through uploads. */
export const BODY_BYTES = 128 * MiB;
/** Parts of a form: the interface defines fewer than thirty. */
export const FORM_FIELDS_MAX = 64;
/** Longest field of a form: a prompt of 224 tokens or a list of keywords. */
export const FORM_FIELD_BYTES = 8 * KiB;
/** Header lines of one part of a form; a longer run is not a form. */
export const PART_HEADER_BYTES = 8 * KiB;
/** Content type of a form: its name and a boundary of at most 70 characters (RFC 2046). */
export const CONTENT_TYPE_CHARACTERS = 1_024;
