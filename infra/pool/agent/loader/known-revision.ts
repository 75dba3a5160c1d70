import type { ModelDescription } from '../../../../shared/pool/description.ts';
import type { Source } from '../store/contract.ts';
import type { Revision } from './engine-folder.ts';

/** A signed revision that the agent can fetch and load. */
export interface KnownRevision extends Revision {
  readonly description: ModelDescription;
  readonly source: Source;
}
