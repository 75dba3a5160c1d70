import { PROJECT_DOCUMENTS_MAX, PROJECT_SEGMENTS_MAX } from '../../shared/jobs/limits.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { PathParams } from '../context.ts';

/** A segment of a document; 0 where the path names none. */
export interface SegmentPlace {
  readonly document: number;
  readonly segment: number;
}

/** A decimal number without leading zeros. */
const NUMBER = /^(0|[1-9]\d{0,3})$/;

/** Reads the document, and the segment of it, from a path below `/v1/projects/{name}`. */
export function readPlace({ document = '', segment = '0' }: PathParams): Result<SegmentPlace> {
  if (!NUMBER.test(document) || Number(document) >= PROJECT_DOCUMENTS_MAX) return no(refuse('document_unknown'));
  if (!NUMBER.test(segment) || Number(segment) >= PROJECT_SEGMENTS_MAX) return no(refuse('segment_unknown'));
  return ok({ document: Number(document), segment: Number(segment) });
}
