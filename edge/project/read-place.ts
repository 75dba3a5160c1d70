import { limits } from '../../shared/limits.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';

/** A segment of a document; 0 where the address names none. */
export interface SegmentPlace {
  readonly document: number;
  readonly segment: number;
}

const ADDRESS = /\/documents\/([^/]+)\/(?:segments\/([^/]+)|[a-z]+)$/;
/** One spelling for each number. */
const NUMBER = /^(0|[1-9]\d{0,3})$/;

/** Which document, and which segment of it, an address below `/v1/projects/{id}` names. */
export function readPlace(url: string): Result<SegmentPlace> {
  const [, document = '', segment = '0'] = ADDRESS.exec(new URL(url).pathname) ?? [];
  if (!NUMBER.test(document) || Number(document) >= limits.projectDocuments.value)
    return no(refuse('document_unknown'));
  if (!NUMBER.test(segment) || Number(segment) >= limits.projectSegments.value) return no(refuse('segment_unknown'));
  return ok({ document: Number(document), segment: Number(segment) });
}
