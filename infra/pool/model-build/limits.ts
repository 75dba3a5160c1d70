import { MiB } from '../../../shared/bytes.ts';

/** Unpacked size of one checkpoint: a few compressed megabytes must not fill the disk. */
export const MODEL_UNPACKED_BYTES = 16 * 1024 * MiB;
/** Files in one tar or zip; a checkpoint of a large network has a thousand or two. */
export const MODEL_SOURCE_ENTRIES_MAX = 4096;
/** Manifest of an archive; it is read into memory before anything is checked. */
export const MODEL_MANIFEST_BYTES = 4 * MiB;
/** Vocabulary, lexicon, language model or configuration, unpacked: it is read as a whole. */
export const MODEL_TEXT_BYTES = 512 * MiB;
