import { type CallTask, type Encoding, encodings, readCallRecord } from '../../../shared/kserve/call.ts';
import { INFER_BODY_BYTES, INFER_NAME_CHARACTERS } from '../../../shared/kserve/limits.ts';
import { type Refusal, refuse } from '../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../shared/result.ts';
import { type Claims, clampClass, type Scope } from '../../../shared/tenant/claims.ts';
import { admit, recordDenial } from '../../auth/admit.ts';
import type { RequestContext } from '../../context.ts';
import { CallerBody } from '../../http/caller-body.ts';
import { refusedWith, Session } from '../../ledger/session.ts';
import { readModelNames } from '../../routing/model-names.ts';
import { Relay } from '../../routing/relay.ts';
import { type SequenceCaller, sequenceCaller } from './caller.ts';
import { type Framing, findSequence } from './find-sequence.ts';
import { answerCall, refuseKserve } from './render-answer.ts';

/** A question about a model that an agent answers. */
export interface ModelCall {
  readonly model: string;
  readonly version: string | undefined;
  readonly operation: CallTask;
}

interface Row {
  /** Any of these will do. */
  readonly scopes: readonly [Scope, ...Scope[]];
  /** For the record. */
  readonly action: string;
}

const describing: Row = { scopes: ['infer', 'models'], action: 'describe' };
/** Counters and settings of an engine concern all tenants. */
const operating: Row = { scopes: ['operate'], action: 'describe' };
const rows: Readonly<Record<CallTask, Row>> = {
  infer: { scopes: ['infer'], action: 'infer' },
  generate: { scopes: ['infer'], action: 'generate' },
  generate_stream: { scopes: ['infer'], action: 'generate' },
  metadata: describing,
  config: operating,
  stats: operating,
};

/** From the caller's request to the answer of a pool, or to the refusal of whatever failed. */
export async function callModel(request: Request, question: ModelCall, context: RequestContext): Promise<Response> {
  const { scopes, action } = rows[question.operation];
  const claims = await admit(request, scopes, context);
  if (!claims.ok) return refuseKserve(claims.refusal);
  const denied = (refusal: Refusal) => refuseKserve(recordDenial(claims.value, action, refusal, context));
  const framing = readFraming(request, claims.value);
  if (!framing.ok) return denied(framing.refusal);
  const name = readName(request, 'x-auricle-session', 'must be a name of this process');
  if (!name.ok) return denied(name.refusal);

  const requestClass = clampClass(request.headers.get('x-auricle-class') ?? undefined, claims.value.priority);
  const body = new CallerBody(request.body, context.runtime, {
    class: requestClass,
    tenant: claims.value.tenant,
  });
  context.discardBody = () => body.discard();
  const model = (await readModelNames(claims.value, context))(question.model) ?? question.model;
  const subject = { action, model, language: undefined, class: requestClass };
  // The slot comes before the body: without one no byte is buffered.
  const session = await Session.begin(claims.value, subject, context);
  if (!session.ok) return refuseKserve(session.refusal);

  const looking = look(question, framing.value, body, session.value);
  // A caller that goes away meanwhile must not take the end of its request along.
  context.waitUntil(looking);
  const sequence = await looking;
  if (!sequence.ok) return refuseKserve(sequence.refusal);
  const { value: id } = sequence;
  const authorization = request.headers.get('authorization');
  const caller = { claims: claims.value, authorization, session: name.value };
  const owned = id === undefined ? undefined : { id, ...sequenceCaller(caller, context.settings) };
  const relay = new Relay(
    session.value,
    body,
    agentRequest({ ...question, model }, framing.value, owned, request),
    context,
  );
  relay.watch(request.signal);
  return answerCall(relay);
}

/** Checks a request before a byte of its body was read. */
function readFraming({ headers }: Request, claims: Claims): Result<Framing> {
  if (claims.sealing === 'client') return no(refuse('sealing_required'));
  const packed = headers.get('content-encoding')?.trim().toLowerCase() ?? 'identity';
  const encoding = encodings.find((one) => one === packed);
  if (packed !== 'identity' && !encoding) {
    const rule = `content-encoding '${packed.slice(0, 40)}' is not supported, gzip and deflate are`;
    return no(refuse('tensors_unsupported', { rule }));
  }
  const limit = INFER_BODY_BYTES;
  if (Number(headers.get('content-length') ?? 0) > limit) return no(refuse('tensors_too_large', { limit }));
  const sequence = readName({ headers }, 'x-auricle-sequence', 'must be the id of a sequence');
  if (!sequence.ok) return sequence;
  const headerLength = headers.get('inference-header-content-length')?.slice(0, 20);
  return ok({ headerLength, encoding, sequence: sequence.value });
}

/** Reads a header that may be absent and must not be empty. */
function readName({ headers }: Pick<Request, 'headers'>, field: string, rule: string): Result<string | undefined> {
  const name = headers.get(field) ?? undefined;
  const isName = name === undefined || (name !== '' && name.length <= INFER_NAME_CHARACTERS);
  return isName ? ok(name) : no(refuse('field_invalid', { field, rule }));
}

/** The sequence, of which only an inference can be a part. A refusal has ended the session. */
async function look(
  { operation }: ModelCall,
  framing: Framing,
  body: CallerBody,
  session: Session,
): Promise<Result<string | undefined>> {
  const fail = (refusal: Refusal) => {
    body.cancel();
    return session.end({ ...refusedWith(refusal), bytes: body.received });
  };
  if (operation !== 'infer') return ok(undefined);
  try {
    const found = await findSequence(body, framing);
    if (!found.ok) await fail(found.refusal);
    return found;
  } catch (error) {
    await fail(refuse('internal'));
    throw error;
  }
}

function agentRequest(
  { model, version, operation }: ModelCall,
  { headerLength, encoding }: Framing,
  sequence: (SequenceCaller & { readonly id: string }) | undefined,
  request: Request,
) {
  const accept = accepted(readAccept(request));
  const head = {
    v: 1,
    task: operation,
    model,
    ...(version !== undefined && { version }),
    ...(headerLength !== undefined && { headerLength }),
    ...(encoding && { encoding }),
    ...(accept && { accept }),
    ...(sequence && { sequence: sequence.id, caller: sequence.caller }),
    ...(sequence?.session !== undefined && { session: sequence.session }),
  };
  // Counters of one engine after another would jump: statistics come from one agent while it is there.
  const own = sequence && [sequence.caller, sequence.session, sequence.id].join(' ');
  const sticky = operation === 'stats' ? 'statistics' : own;
  const hints = { model, language: undefined };
  return { task: 'infer', hints, head, sticky, read: readCallRecord } as const;
}

/** Reads the caller's `accept-encoding`, which the platform replaces by its own and passes beside it. */
function readAccept({ headers, cf }: Request): string {
  return (cf ? cf.clientAcceptEncoding : headers.get('accept-encoding')) ?? '';
}

/** How the caller takes an answer: the first of its own list that we know. */
function accepted(header: string): Encoding | undefined {
  const wanted = header
    .split(',')
    .map((one) => one.trim().toLowerCase())
    .filter((one) => !/;\s*q=0(\.0*)?$/.test(one))
    .map((one) => one.split(';')[0]);
  return encodings.find((one) => wanted.includes(one));
}
