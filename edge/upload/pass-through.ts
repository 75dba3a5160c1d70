import { createHash } from 'node:crypto';
import { limits } from '../../shared/limits.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { sealFile } from '../../shared/seal/envelope-stream.ts';
import type { ZoneKey } from '../../shared/seal/zone-key.ts';
import { uploadRow } from '../../shared/upload/contract.ts';
import { discardSource, openSource } from '../body-source.ts';
import { late, within } from '../clock.ts';
import type { RequestContext } from '../context.ts';
import { CLIENT_GONE, refusedWith } from '../short/session.ts';
import { askBackOffice, openOutcome } from './back-office.ts';
import type { Granted } from './create-upload.ts';
import type { ReadBytes } from './file-part.ts';
import { sendBlocks } from './send-blocks.ts';

const slow = refuse('client_slow', { limit: limits.bodyIdleMs.value / 1_000 });

/** Reads the body of a request. One that stands still, or whose client leaves before its end, is refused. */
export function readBody(request: Request, context: RequestContext): ReadBytes {
  const source = request.body ? openSource(request.body) : undefined;
  const { surroundings } = context;
  if (source) context.discardBody = () => discardSource(source, surroundings);
  return async () => {
    if (!source) return ok(undefined);
    // A read fails only when the client has left; the request's signal tells so later, if ever.
    const reading = source.read().catch((): typeof late => late);
    const piece = await within(reading, limits.bodyIdleMs.value, surroundings);
    return piece === late ? no(slow) : ok(piece);
  };
}

class Broken extends Error {
  readonly refusal: Refusal;
  constructor(refusal: Refusal) {
    super(refusal.reason);
    this.refusal = refusal;
  }
}

/**
 * Sends a file that a caller sends to us on to where its upload expects it, sealed to the key of the zone on the way: it
 * never lies in storage otherwise, and of it one block is held here. Ends the session and the run of the grant. Deletes
 * the upload of a file that did not come whole, unless a retry with the same key gets that upload.
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
    : await send(request, piece, granted, counted, context);
  const ended = sent.ok ? { status: 200 } : request.signal.aborted ? CLIENT_GONE : refusedWith(sent.refusal);
  // Storage that did not confirm a file may have it all the same.
  const open = !sent.ok && !run.done && sent.refusal.reason === 'uploads_unavailable';
  const told = open ? no({ ...sent.refusal, params: openOutcome(granted.asked.id) }) : sent;
  const [isFree] = await Promise.all([
    run.end(told.ok ? undefined : told.refusal, sent.ok && !run.done ? hash?.digest('base64url') : undefined),
    session.end({ ...ended, ...counted }),
  ]);
  // An earlier request with the key may have stored the file, and a later one goes on with the same upload.
  if (!sent.ok && !run.done && isFree) context.waitUntil(forget(granted, context));
  return told;
}

/** Reads the file of a repeated request, which is sent nowhere. */
async function compare(read: ReadBytes, isSame: () => boolean): Promise<Result<undefined>> {
  for (;;) {
    const piece = await read();
    if (!piece.ok) return piece;
    if (!piece.value) return isSame() ? ok(undefined) : no(refuse('idempotency_key_reused'));
  }
}

async function send(
  request: Request,
  read: ReadBytes,
  { grant, asked }: Granted,
  counted: { bytes: number },
  { surroundings }: RequestContext,
): Promise<Result<undefined>> {
  const limit = Math.min(grant.maxBytes, limits.uploadBytes.value);
  const facts = { tenant: asked.tenant, upload: grant.id, name: 'upload' };
  const plain = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const piece = await read();
        if (!piece.ok) return controller.error(new Broken(piece.refusal));
        if (!piece.value) {
          if (counted.bytes > 0) return controller.close();
          return controller.error(new Broken(refuse('audio_empty')));
        }
        counted.bytes += piece.value.byteLength;
        if (counted.bytes > limit) controller.error(new Broken(refuse('upload_too_large', { limit })));
        else controller.enqueue(piece.value);
      },
    },
    { highWaterMark: 0 },
  );
  try {
    return await sendBlocks(await sealFile(facts, grant.zoneKey as ZoneKey, plain), grant, surroundings);
  } catch (error) {
    if (error instanceof Broken) return no(error.refusal);
    if (request.signal.aborted) return no(slow);
    throw error;
  }
}

/** Deletes an upload whose file did not come whole. */
async function forget({ asked }: Granted, context: RequestContext): Promise<void> {
  const path = `/uploads/${asked.tenant}/${asked.id}`;
  await askBackOffice({ zone: asked.zone, method: 'DELETE', path }, uploadRow, asked.tenant, context);
}
