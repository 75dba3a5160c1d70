// What edge/wrangler.jsonc says about the worker, so that the local stack and a deployment cannot drift apart.
import { readFileSync } from 'node:fs';
import { z } from 'zod';

const workerConfig = z.object({
  compatibility_date: z.string(),
  compatibility_flags: z.array(z.string()).default([]),
  durable_objects: z
    .object({ bindings: z.array(z.object({ name: z.string(), class_name: z.string() })) })
    .default({ bindings: [] }),
});

export type WorkerConfig = z.infer<typeof workerConfig>;

/** Used until the file exists. */
const INITIAL: WorkerConfig = {
  compatibility_date: '2026-04-01',
  compatibility_flags: ['nodejs_compat'],
  durable_objects: {
    bindings: [
      { name: 'GATE', class_name: 'Gate' },
      { name: 'ROSTER', class_name: 'Roster' },
      { name: 'STREAM', class_name: 'Stream' },
    ],
  },
};

export function readWorkerConfig(file: string): WorkerConfig {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch {
    return INITIAL;
  }
  return workerConfig.parse(JSON.parse(stripComments(text)));
}

/** JSON with comments and trailing commas → JSON. Strings are matched first, so that `//` inside one is left alone. */
export function stripComments(text: string): string {
  return text
    .replace(/("(?:[^"\\]|\\.)*")|\/\/[^\n]*|\/\*[\s\S]*?\*\//g, (_, string) => string ?? '')
    .replace(/("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])/g, (_, string) => string ?? '');
}
