import { createHash } from 'node:crypto';
import { UPLOAD_BYTES, uploadRow } from '../../shared/jobs/upload-contract.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { sealFile } from '../../shared/seal/envelope-stream.ts';
import type { ZoneKey } from '../../shared/seal/zone-key.ts';
import { late, within } from '../clock.ts';
import type { RequestContext } from '../context.ts';
import { callFunctionsRoute, openOutcome } from '../functions/call-functions.ts';
import { discardSource, openSource } from '../http/body-source.ts';
import type { ReadBytes } from '../http/multipart.ts';
import { CLIENT_GONE, refusedWith } from '../ledger/session.ts';
import { BODY_IDLE_MS } from '../limits.ts';
import type { Granted } from './create-upload.ts';
import { sendBlocks } from './send-blocks.ts';

const slow = refuse('client_slow', { limit: BODY_IDLE_MS / 1_000 });

/** Reads the body of a request. Refuses a stalled one, and one whose client leaves before its end. */
export function readBody(request: Request, context: RequestContext): ReadBytes {
  const source = request.body ? openSource(request.body) : undefined;
  const { runtime } = context;
  if (source) context.discardBody = () => discardSource(source, runtime);
  return async () => {
    if (!source) return ok(undefined);
    // A read fails only when the client has left; the request's signal may come later or never.
    const reading = source.read().catch((): typeof late => late);
    const piece = await within(reading, BODY_IDLE_MS, runtime);
    return piece === late ? no(slow) : ok(piece);
  };
}

/**
 * Relays a file from a caller to the address of its upload, sealed to the key of the zone on the way: storage
 * never holds it unsealed, and the edge buffers one block. Ends the session and the run of the grant. Deletes
 * the upload of an incomplete file, unless a retry with the same key gets that upload.
 */
export async function passThrough(
  request: Request,
  read: ReadBytes,
  granted: Granted,
  context: RequestContext,
): Promise<Result<undefined>> {
  const { session, run } = granted;
  const counted = { bytes: 0 };
  const hash = run.fingerprint === undefined ? undefined : createHash('sha256');
  const piece: ReadBytes = async () => {
    run.renew();
    const one = await read();
    if (one.ok && one.value) hash?.update(one.value);
    return one;
  };
  const sent = run.done
    ? await compare(piece, () => hash?.digest('base64url') === run.content)
    : await send({ read: piece, signal: request.signal }, granted, counted, context);
  const ended = sent.ok ? { status: 200 } : request.signal.aborted ? CLIENT_GONE : refusedWith(sent.refusal);
  // Storage may have the file although it did not confirm it.
  const open = !sent.ok && !run.done && sent.refusal.reason === 'uploads_unavailable';
  const outcome = open ? no({ ...sent.refusal, params: openOutcome(granted.upload.id) }) : sent;
  const [isFree] = await Promise.all([
    run.end(outcome.ok ? undefined : outcome.refusal, sent.ok && !run.done ? hash?.digest('base64url') : undefined),
    session.end({ ...ended, ...counted }),
  ]);
  // An earlier request with the key may have stored the file, and a later one continues with the same upload.
  if (!sent.ok && !run.done && isFree) context.waitUntil(forget(granted, context));
  return outcome;
}

/** Reads and compares the file of a repeated request, which is not stored again. */
async function compare(read: ReadBytes, isSame: () => boolean): Promise<Result<undefined>> {
  for (;;) {
    const piece = await read();
    if (!piece.ok) return piece;
    if (!piece.value) return isSame() ? ok(undefined) : no(refuse('idempotency_key_reused'));
  }
}

async function send(
  { read, signal }: { readonly read: ReadBytes; readonly signal: AbortSignal },
  { grant, upload }: Granted,
  counted: { bytes: number },
  { runtime }: RequestContext,
): Promise<Result<undefined>> {
  const limit = Math.min(grant.maxBytes, UPLOAD_BYTES);
  const facts = { tenant: upload.tenant, upload: grant.id, name: 'upload' };
  let failure: Refusal | undefined;
  const plain = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const fail = (refusal: Refusal) => {
          failure = refusal;
          controller.error(new Error(refusal.reason));
        };
        const piece = await read();
        if (!piece.ok) return fail(piece.refusal);
        if (!piece.value) return counted.bytes > 0 ? controller.close() : fail(refuse('audio_empty'));
        counted.bytes += piece.value.byteLength;
        if (counted.bytes > limit) fail(refuse('upload_too_large', { limit }));
        else controller.enqueue(piece.value);
      },
    },
    { highWaterMark: 0 },
  );
  try {
    return await sendBlocks(await sealFile(facts, grant.zoneKey as ZoneKey, plain), grant, runtime);
  } catch (error) {
    if (failure) return no(failure);
    if (signal.aborted) return no(slow);
    throw error;
  }
}

/** Deletes an upload whose file is incomplete. */
async function forget({ upload }: Granted, context: RequestContext): Promise<void> {
  const path = `/uploads/${upload.tenant}/${upload.id}`;
  await callFunctionsRoute({ zone: upload.zone, method: 'DELETE', path }, uploadRow, upload.tenant, context);
}
