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

/** The same for what is no trouble of storage: a bug, or the work of another version. */
export const unreadable = (detail: string) => new Unreadable(refuse('internal', undefined, detail));
