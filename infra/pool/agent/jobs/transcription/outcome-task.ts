import { outcomeHead } from '../../../../../shared/jobs/outcome-head.ts';
import { refuse } from '../../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../../shared/result.ts';
import type { Final } from '../../../../../shared/speech/transcript.ts';
import type { Answer } from '../../request/answer.ts';
import type { Ticket } from '../../request/ticket.ts';
import type { ZoneFiles } from '../../storage/files.ts';
import { openSealed } from '../../storage/files.ts';
import { LineError, readLines } from '../task/lines.ts';
import { transcriptLine } from './sheets.ts';

interface OutcomeRequest {
  readonly context: { readonly files?: ZoneFiles | undefined };
  readonly ticket: Pick<Ticket, 'tenant'>;
  readonly answer: Pick<Answer, 'send'>;
  /** Record 0. */
  readonly head: unknown;
  readonly signal: AbortSignal;
}

/**
 * Task `outcome` of a short request: opens the transcript of an upload and answers what is in it, as if it had been
 * recognised just now. Nothing is held but a line. The ticket says whose it may be; the seal proves that it is.
 */
export async function answerOutcome({
  context,
  ticket,
  answer,
  head,
  signal,
}: OutcomeRequest): Promise<Result<undefined>> {
  const parsed = outcomeHead.safeParse(head);
  if (!parsed.success) return no(refuse('seal_broken', undefined, 'head is not understood'));
  if (!context.files) return no(refuse('misdirected', undefined, 'this agent opens no files'));
  const { upload, run, read } = parsed.data;
  const { keyring, storage } = context.files;
  const source = storage.read(read, signal);
  const file = openSealed(source, { tenant: ticket.tenant, upload, name: `${run}/transcript` }, keyring);
  /** Told only when the seal has shown that nothing follows. */
  let final: Final | undefined;
  let misplaced = false;
  try {
    for await (const line of readLines(file.bytes, transcriptLine)) {
      misplaced ||= final !== undefined;
      if (line.type === 'final') final = line;
      else if (line.type === 'segment' && !misplaced) await answer.send(line);
    }
  } catch (error) {
    if (!(error instanceof LineError)) throw error;
    misplaced = true;
  }
  const wrong = file.wrong();
  if (wrong) return no(wrong.reason === 'upload_audio_gone' ? refuse('transcript_gone') : wrong);
  if (!final || misplaced) return no(refuse('internal', undefined, 'a transcript without an end'));
  await answer.send(final);
  return ok(undefined);
}
