// Text about one upload.

import { z } from 'zod';
import { transcriptFormats } from '../../../shared/jobs/upload-contract.ts';
import { type Answer, refused } from '../answer.ts';
import type { Arguments } from '../options.ts';
import type { UploadEnv } from './upload-env.ts';
import { followUpload, pendingWords, printChanges, type UploadState, uploadState } from './upload-follow.ts';

interface Listed {
  readonly id: string;
  readonly created: string;
  readonly status: string;
}

/** Returns one line of a list: of uploads as of projects. */
export const listLine = ({ id, created, status }: Listed, more: string): string =>
  [id, created, status.padEnd(9), more].join('  ').trimEnd();

/** Returns why a transcript format is invalid. */
export function formatProblem(format: string | undefined): string | undefined {
  const known: readonly string[] = transcriptFormats;
  if (format === undefined || known.includes(format)) return undefined;
  return `--format ${format} is not one of ${known.join(', ')}`;
}

/** Sends a request about an upload and returns its state. */
export async function printUpload(
  url: string,
  method: 'GET' | 'DELETE' | 'POST',
  headers: Record<string, string>,
  world: Pick<UploadEnv, 'fetch'>,
): Promise<Answer> {
  const response = await world.fetch(url, { method, headers });
  if (!response.ok) return refused(response);
  const value = uploadState.parse(await response.json());
  return { exit: 0, text: line(value), value };
}

/** Follows an upload to its end and returns the transcript. */
export async function printEnd(
  url: string,
  given: Arguments,
  headers: Record<string, string>,
  world: UploadEnv,
): Promise<Answer> {
  const { fetch: send, pause } = world;
  const print = printChanges(world.print);
  const changed = (upload: UploadState) => print(line(upload));
  const end = await followUpload(url, headers, { fetch: send, pause, changed });
  if (end instanceof Response) return refused(end);
  if (end.status !== 'done') return { exit: 1, text: line(end), value: end };
  const format = given.format ?? 'json';
  const response = await send(`${url}/transcript?format=${encodeURIComponent(format)}`, { headers });
  if (!response.ok) return refused(response);
  const body = await response.text();
  if (format !== 'json') return { exit: 0, text: body.trimEnd(), value: { ...end, text: body } };
  const transcript = z.looseObject({ text: z.string() }).parse(JSON.parse(body));
  // People get the words and programs everything.
  return {
    exit: 0,
    text: given.format ? body : transcript.text,
    value: { ...end, text: transcript.text, outcome: transcript },
  };
}

function line(upload: UploadState): string {
  const { id, status, pieces, error } = upload;
  const done = pieces.total > 1 ? ` ${pieces.done}/${pieces.total}` : '';
  return `${id}: ${status}${done}${pendingWords(upload)}${error ? `, ${error.message} (${error.code})` : ''}`;
}
