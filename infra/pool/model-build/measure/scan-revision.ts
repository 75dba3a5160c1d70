// Evidence "scan": every file of a revision, scanned as `import` scans foreign files.
import type { Evidence } from '../../../../shared/registry/evidence.ts';
import { scanFiles } from '../scan/scan-folder.ts';
import type { Revision } from './revision.ts';

type Scan = Extract<Evidence, { kind: 'scan' }>;

/** Longest text of a fact, characters. */
const FACT_CHARACTERS = 512;

export async function scanRevision(
  revision: Pick<Revision, 'repository' | 'files' | 'model'>,
  tool: string,
): Promise<Scan> {
  const found = await scanFiles(revision.repository, revision.files);
  const named = { revision: revision.model.description.revision, files: revision.files.length };
  if (found.ok) return { kind: 'scan', tool, verdict: 'PASS', facts: { ...named, networks: found.value } };
  const { kind, text } = found.refusal;
  return {
    kind: 'scan',
    tool,
    verdict: 'FAIL',
    facts: { ...named, problem: `${kind}: ${text}`.slice(0, FACT_CHARACTERS) },
  };
}
