import { limits } from '../../shared/limits.ts';
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
  if (!NUMBER.test(document) || Number(document) >= limits.projectDocuments.value)
    return no(refuse('document_unknown'));
  if (!NUMBER.test(segment) || Number(segment) >= limits.projectSegments.value) return no(refuse('segment_unknown'));
  return ok({ document: Number(document), segment: Number(segment) });
}
