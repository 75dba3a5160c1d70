// Log of a model in the table: one partition per model, one row per entry, and one row with the state that
// they add up to. An entry and its consequences are written in one transaction, conditional on the state
// read.
import { refuse } from '../../shared/refusal.ts';
import {
  applyEntry,
  type Entry,
  type EntryDraft,
  entry,
  newRegistry,
  placeEntry,
  type Registry,
  registry,
} from '../../shared/registry/registry.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { type Change, endOf } from '../store/rows.ts';
import { MODEL_TRIES_MAX } from './limits.ts';
import type { ModelContext } from './model-context.ts';

const HEAD = 'head';
const SEQ_DIGITS = 10;
const entryKey = (seq: number): string => `e!${String(seq).padStart(SEQ_DIGITS, '0')}`;

export interface StoredModel {
  readonly registry: Registry;
  /** Number of the last entry that the audit log has. */
  readonly reported: number;
  readonly version: string | undefined;
}

export async function readModel({ rows }: Pick<ModelContext, 'rows'>, model: string): Promise<StoredModel> {
  const row = await rows.read(model, HEAD);
  if (!row) return { registry: newRegistry(model), reported: 0, version: undefined };
  return { registry: registry.parse(row.value.registry), reported: Number(row.value.told), version: row.version };
}

/** Returns entries after `after`, oldest first. */
export async function readEntries(
  { rows }: Pick<ModelContext, 'rows'>,
  model: string,
  after: number,
  limit: number,
): Promise<Entry[]> {
  const found = await rows.scan(model, entryKey(after + 1), endOf('e!'), limit);
  return found.map(({ value }) => entry.parse(value));
}

/** Decision of a request: the entry to write, if any, the answer, and further row changes. */
export interface Decided<Answer> {
  readonly draft: EntryDraft | undefined;
  readonly answer: Answer;
  readonly changes?: readonly Change[];
}

export interface Appended<Answer> {
  readonly registry: Registry;
  /** The new entry, if one was written. */
  readonly entry: Entry | undefined;
  readonly answer: Answer;
}

/**
 * Decides on the current state and commits if it is unchanged; retries on a conflict. Refuses
 * `models_unavailable` after `MODEL_TRIES_MAX`.
 */
export async function append<Answer>(
  context: ModelContext,
  model: string,
  decide: (known: Registry) => Promise<Result<Decided<Answer>>> | Result<Decided<Answer>>,
): Promise<Result<Appended<Answer>>> {
  for (let attempt = 0; attempt < MODEL_TRIES_MAX; attempt += 1) {
    const stored = await readModel(context, model);
    const decided = await decide(stored.registry);
    if (!decided.ok) return decided;
    const { draft, answer, changes = [] } = decided.value;
    if (!draft) {
      const done = changes.length === 0 || (await context.rows.commit(model, changes));
      if (done) return ok({ registry: stored.registry, entry: undefined, answer });
      continue;
    }
    const next = placeEntry(stored.registry, draft, context.now());
    const known = applyEntry(stored.registry, next);
    const written = await context.rows.commit(model, [
      headChange({ registry: known, reported: stored.reported, version: stored.version }),
      { type: 'insert', key: entryKey(next.seq), value: next },
      ...changes,
    ]);
    if (written) return ok({ registry: known, entry: next, answer });
  }
  return no(refuse('models_unavailable', undefined, `${model} changes all the time`));
}

function headChange({ registry: known, reported, version }: StoredModel): Change {
  const value = { registry: known, told: reported };
  return version === undefined ? { type: 'insert', key: HEAD, value } : { type: 'replace', key: HEAD, value, version };
}

/** Records the progress of the audit log; `false` on a conflict. */
export const storeReported = ({ rows }: ModelContext, stored: StoredModel, reported: number): Promise<boolean> =>
  rows.commit(stored.registry.model, [headChange({ ...stored, reported })]);
