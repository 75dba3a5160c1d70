// The measured revision: exactly the files in its digest.
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { ok } from '../../../../shared/result.ts';
import { type RepositoryModel, readModel } from '../../agent/models/models.ts';
import { parseText } from '../../models/config/parse-text.ts';
import type { ModelConfig } from '../../models/config/schema.ts';
import { type BuildResult, problem } from '../problem.ts';

export interface Revision {
  readonly repository: string;
  readonly model: RepositoryModel;
  /** All its files, by path in the repository. */
  readonly files: readonly string[];
  /** Models that it uses, by name. */
  readonly parts: ReadonlyMap<string, ModelConfig>;
}

const CONFIG = /^([^/]+)\/config\.pbtxt$/;

/** Reads a model of a repository as an agent beside an engine does. */
export async function readRevision(repository: string, name: string): Promise<BuildResult<Revision>> {
  const files: string[] = [];
  const place = {
    repository,
    now: 0,
    digests: new Map(),
    enter: async (_: string, found: { readonly files: readonly { readonly name: string }[] }) => {
      files.push(...found.files.map((file) => file.name));
      return undefined;
    },
  };
  try {
    const model = await readModel(place, name);
    if (!model) return problem('unreadable', `${path.join(repository, name)} is no model that agents serve`);
    const parts = new Map<string, ModelConfig>();
    for (const file of files) {
      const part = CONFIG.exec(file)?.[1];
      if (part === undefined) continue;
      const parsed = parseText(await readFile(path.join(repository, file), 'utf8'));
      if (!parsed.ok) return problem('unreadable', `${file}: ${parsed.refusal.reason}`);
      parts.set(part, parsed.value);
    }
    return ok({ repository, model, files, parts });
  } catch (error) {
    return problem('unreadable', `${name}: ${error instanceof Error ? error.message : 'it cannot be read'}`);
  }
}
