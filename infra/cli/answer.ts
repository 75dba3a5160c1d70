// The result of a command: text for people, a value for programs, and the exit code.
import { z } from 'zod';
import { jsonOf } from '../../shared/json-text.ts';

/** `note` goes to stderr: the text itself may be redirected to a file. */
export type Answer = { exit: number; text: string; value: unknown; note?: string };

/** Exit codes: 0 done, 1 refused or unreachable, 2 invalid command. */
export const wrong = (text: string): Answer => ({ exit: 2, text, value: { error: { message: text } } });

/** A valid command that cannot be executed. */
export const impossible = (text: string): Answer => ({ ...wrong(text), exit: 1 });

/** Returns the text of a refusal with the request id by which an operator finds it. */
export const withRequest = (text: string | undefined, request: string | undefined): string | undefined =>
  [text?.replace(/\.$/, ''), request && `request ${request}`].filter(Boolean).join(', ') || undefined;

const refusal = z.object({ error: z.object({ code: z.string().nullish(), message: z.string() }) });

/** Returns a refusal in the words of the edge, with the request id for its operator. */
export async function refused(response: Response): Promise<Answer> {
  const body = await response.text();
  const id = response.headers.get('x-request-id');
  const parsed = refusal.safeParse(jsonOf(body));
  const words = parsed.success
    ? `${parsed.data.error.message}${parsed.data.error.code ? ` (${parsed.data.error.code})` : ''}`
    : 'the edge answered in an unknown form';
  const text = `${response.status}: ${words}${id ? `, request ${id}` : ''}`;
  const value = parsed.success
    ? { ...parsed.data, status: response.status, request: id }
    : { error: { message: text } };
  return { exit: 1, text, value };
}

/** Returns the answer for an error of a command without an edge. */
export const failedLocally = (error: unknown): Answer =>
  wrong(localProblem(error) ?? (error instanceof Error ? error.message : String(error)));

/** Returns the answer for an error of a file, of the network, or of an invalid response. */
export function unreachable(edge: string, error: unknown): Answer {
  const local = localProblem(error);
  if (local !== undefined) return wrong(local);
  if (error instanceof z.ZodError || error instanceof SyntaxError)
    return impossible(`${edge} does not answer like an edge`);
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return impossible(`${edge} cannot be reached: ${cause instanceof Error ? cause.message : 'no reason given'}`);
}

/** Describes an error of a file or folder of this machine; `undefined` for others. */
function localProblem(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  // Node names no path where a folder is read as a file.
  if (error.code === 'EISDIR') return 'a folder was named where a file is needed';
  if (!('path' in error)) return undefined;
  const { path, code } = error;
  return code === 'ENOENT' ? `no such file or folder: ${String(path)}` : `${String(path)}: ${error.message}`;
}
