import { z } from 'zod';
import { pendingShape, pendingWords } from './upload-follow.ts';

const count = z.object({ total: z.number(), done: z.number() });
const error = z.object({ code: z.string(), message: z.string() }).optional();

/** Members of a project that the command line reads. */
export const projectState = z.looseObject({
  id: z.string(),
  status: z.string(),
  seq: z.number(),
  tenant: z.string(),
  zone_key: z.unknown(),
  documents: z.array(
    z.looseObject({
      index: z.number(),
      id: z.string(),
      status: z.string(),
      edition: z.number(),
      segments: count,
      blocks: z.array(count),
      error,
    }),
  ),
  error,
  ...pendingShape,
});
export type ProjectState = z.infer<typeof projectState>;

/** Returns one line for people: progress of each document, and its finished blocks. */
export const projectLine = (project: ProjectState): string => `${project.id}: ${project.status} ${progressOf(project)}`;

/** Returns the line without id and status. */
export function progressOf(project: ProjectState): string {
  const { documents, error: why } = project;
  const parts = documents.map(({ segments, blocks }) => {
    const whole = blocks.filter(({ total, done }) => done === total).length;
    return `${segments.done}/${segments.total}${blocks.length > 1 ? ` (${whole}/${blocks.length} blocks)` : ''}`;
  });
  const fault = why ?? documents.find((one) => one.error)?.error;
  return `${parts.join(', ')}${pendingWords(project)}${fault ? `, ${fault.message} (${fault.code})` : ''}`;
}
