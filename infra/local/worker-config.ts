// Worker settings of edge/wrangler.jsonc, shared by the local stack and deployments.
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

/** Default until the file exists. */
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

/**
 * Converts JSON with comments and trailing commas to JSON. Strings match first, so that `//` inside one
 * stays.
 */
export function stripComments(text: string): string {
  return text
    .replace(/("(?:[^"\\]|\\.)*")|\/\/[^\n]*|\/\*[\s\S]*?\*\//g, (_, string) => string ?? '')
    .replace(/("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])/g, (_, string) => string ?? '');
}
