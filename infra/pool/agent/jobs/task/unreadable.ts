import { type Refusal, refuse } from '../../../../../shared/refusal.ts';

/** Why an outcome of ours could not be read; thrown through streams and loops, and caught where the job is judged. */
export class Unreadable extends Error {
  readonly refusal: Refusal;
  constructor(refusal: Refusal) {
    super(refusal.reason);
    this.name = 'Unreadable';
    this.refusal = refusal;
  }
}

/** Returns the failure of content that storage delivered and this version cannot read. */
export const unreadable = (detail: string) => new Unreadable(refuse('internal', undefined, detail));
