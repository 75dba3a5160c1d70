// auricle transcribe FILE
import { openAsBlob, statSync } from 'node:fs';
import path from 'node:path';
import { type Answer, refused, wrong } from '../answer.ts';
import type { Arguments } from '../options.ts';

export async function transcribe(given: Arguments, headers: Record<string, string>): Promise<Answer> {
  const [file = ''] = given.operands;
  const form = new FormData();
  // Fields precede the file, so that the edge finds its routing fields first.
  form.set('model', given.model);
  if (given.language) form.set('language', given.language);
  form.set('response_format', given.format ?? 'json');
  try {
    if (!statSync(file).isFile()) return wrong(`${file} is not a file`);
    // Streams from disk; a long recording is never buffered whole.
    form.set('file', await openAsBlob(file), path.basename(file));
  } catch {
    return wrong(`${file} cannot be read`);
  }
  const response = await fetch(`${given.edge}/v1/audio/transcriptions`, { method: 'POST', headers, body: form });
  if (!response.ok) return refused(response);
  const body = await response.text();
  if (!(response.headers.get('content-type') ?? '').includes('json')) {
    return { exit: 0, text: body.trimEnd(), value: { text: body } };
  }
  const value = JSON.parse(body);
  // Without `--format`, people get the text and programs everything.
  return { exit: 0, text: given.format === undefined ? String(value.text) : body, value };
}
