import { MiB } from '../../../../../shared/bytes.ts';
import { DOCUMENT_JSON } from '../../../../../shared/jobs/document.ts';
import { documentHead } from '../../../../../shared/jobs/document-head.ts';
import { manifest } from '../../../../../shared/jobs/project-manifest.ts';
import { refuse } from '../../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../../shared/result.ts';
import type { Answer } from '../../request/answer.ts';
import { sendPieces } from '../../request/respond.ts';
import type { Ticket } from '../../request/ticket.ts';
import type { ZoneFiles } from '../../storage/files.ts';
import { openSealed } from '../../storage/files.ts';
import { splitLine } from './sheets.ts';

/**
 * Manifest of PROJECT_SEGMENTS_MAX segments with their texts: 1,000 times 400 characters of four bytes and
 * 400 more.
 */
const PROJECT_MANIFEST_BYTES = 4 * MiB;

interface DocumentRequest {
  readonly context: { readonly files?: ZoneFiles | undefined };
  readonly ticket: Pick<Ticket, 'tenant'>;
  readonly answer: Pick<Answer, 'send' | 'sendBody'>;
  /** Record 0. */
  readonly head: unknown;
  readonly signal: AbortSignal;
}

/**
 * Task `document` of a short request: opens a spoken document and answers its sound or its manifest. The ticket says
 * whose it may be; the seal proves that it is.
 */
export async function answerDocument({
  context,
  ticket,
  answer,
  head,
  signal,
}: DocumentRequest): Promise<Result<undefined>> {
  const parsed = documentHead.safeParse(head);
  if (!parsed.success) return no(refuse('seal_broken', undefined, 'head is not understood'));
  if (!context.files) return no(refuse('misdirected', undefined, 'this agent opens no files'));
  const { document, run, name, part, read } = parsed.data;
  const source = context.files.storage.read(read, signal);
  const facts = { tenant: ticket.tenant, upload: document, name: `${run}/${name}` };
  const file = openSealed(source, facts, context.files.keyring);
  const gone = () => {
    const wrong = file.wrong();
    if (!wrong) return no(refuse('internal', undefined, 'a document that is not understood'));
    return no(wrong.reason === 'upload_audio_gone' ? refuse('speech_gone') : wrong);
  };
  const { line, rest, close } = await splitLine(file.bytes, PROJECT_MANIFEST_BYTES);
  const { data } = manifest.safeParse(line);
  if (!data) {
    await close();
    return gone();
  }
  const final = { type: 'final', model: data.model, revision: data.revisions[0] ?? '', durationSeconds: 0 } as const;
  if (part === 'manifest') {
    await close();
    const body = new TextEncoder().encode(`${JSON.stringify(data)}\n`);
    await answer.send({ type: 'answer', headers: { 'content-type': DOCUMENT_JSON }, bytes: body.length });
    const sent = await sendPieces(answer, body);
    if (!sent.ok) return sent;
  } else {
    const { content_type: contentType, bytes } = data.audio;
    await answer.send({ type: 'answer', headers: { 'content-type': contentType }, bytes });
    for await (const chunk of rest) {
      const sent = await sendPieces(answer, chunk);
      if (!sent.ok) return sent;
    }
    if (file.wrong()) return gone();
  }
  await answer.send(final);
  return ok(undefined);
}
