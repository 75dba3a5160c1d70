import { randomUUID } from 'node:crypto';
import { Agent, type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { sha256 } from '../../infra/pool/agent/identity/keys.ts';
import { createOpener, createSealer, type Opener, type Sealer } from '../../shared/seal/records.ts';
import { edgeCounters, openSealedSession } from '../../shared/seal/sealed-session.ts';
import { type SealSetup, setupSender } from '../../shared/seal/setup.ts';
import { type AnswerEvent, answerEvent } from '../../shared/speech/transcript.ts';

/** Signs tickets and seals as the edge does. */
export async function startFakeEdge() {
  const pair = await generateKeyPair('ES256', { extractable: true });
  const jwk = { ...(await exportJWK(pair.publicKey)), kid: 'edge-1', alg: 'ES256', use: 'sig' };
  return {
    jwks: { keys: [jwk] },
    async ticket(claims: Record<string, unknown>, key: CryptoKey = pair.privateKey): Promise<string> {
      const seconds = Math.floor(Date.now() / 1_000);
      return new SignJWT({ v: 1, jti: randomUUID(), iat: seconds, exp: seconds + 60, ...claims })
        .setProtectedHeader({ alg: 'ES256', kid: 'edge-1' })
        .sign(key);
    },
  };
}
export type FakeEdge = Awaited<ReturnType<typeof startFakeEdge>>;

const payloadOf = (token: string) => JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());

/** Seals to an agent, by the attestation it would announce. */
export async function sealTo(attestation: string): Promise<SealSetup> {
  const keys: JsonWebKey[] = payloadOf(attestation)['x-ms-runtime'].keys;
  const key = keys.find((candidate) => (candidate as { use?: string }).use === 'enc');
  if (!key) throw new Error('no seal key');
  return setupSender(key, 5, attestation);
}

/** A call to an agent, whatever it is about. */
export interface Call {
  readonly url: string;
  readonly agent: string;
  readonly attestation: string;
  readonly edge: FakeEdge;
  readonly claims?: Record<string, unknown>;
  readonly ticket?: string;
  readonly setup?: SealSetup;
}

/** The headers of a call, and what seals it and opens the answer. */
export async function sealCall(call: Call, asked: { readonly class: string; readonly model: string }) {
  const setup = call.setup ?? (await sealTo(call.attestation));
  const att = sha256(call.attestation);
  const usual = { aud: call.agent, tenant: 'dev', ...asked, enc: sha256(setup.enc), att, suite: 5, deadlineMs: 60_000 };
  const ticket = call.ticket ?? (await call.edge.ticket({ ...usual, ...call.claims }));
  const keys = await setup.keysFor(ticket);
  const [sealer, opener] = [await createSealer(keys.request, 5), await createOpener(keys.answer, 5)];
  const enc = Buffer.from(setup.enc).toString('base64url');
  return { headers: { 'auricle-ticket': ticket, 'auricle-enc': enc }, sealer, opener };
}

export interface ShortRequest extends Call {
  readonly body: Uint8Array | AsyncIterable<Uint8Array>;
  readonly contentType: string;
  readonly head?: Record<string, unknown>;
  readonly traceparent?: string;
  /** Number of the request in its session. */
  readonly lane?: number;
  /** Changes sealed records on their way; undefined drops one. */
  readonly tamper?: (record: Uint8Array, index: number) => Uint8Array | undefined;
  /** Parses a record; by default as a transcription event. */
  readonly read?: (plaintext: Uint8Array) => unknown;
  readonly onEvent?: (event: AnswerEvent) => void;
  readonly signal?: AbortSignal;
}

export interface ShortAnswer {
  readonly status: number;
  /** Reason of a plain refusal. */
  readonly reason?: string;
  /** Seconds, of a plain refusal that says when a slot is free. */
  readonly retryAfter?: number;
  readonly events: AnswerEvent[];
  /** The last record had the final flag. */
  readonly whole: boolean;
  /** The answer had a content length. */
  readonly inOnePiece?: boolean;
}

async function* segments(body: Uint8Array | AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  if (!(body instanceof Uint8Array)) return yield* body;
  for (let at = 0; at < body.length; at += 65_536) yield body.subarray(at, at + 65_536);
}

const readEvent = (plaintext: Uint8Array) => answerEvent.parse(JSON.parse(new TextDecoder().decode(plaintext)));

/** Kept alive as the edge's are: closing one while a body is on its way would lose the answer. */
const connections = new Agent({ keepAlive: true });

/** A set-up and the ticket of a sealed session over it. */
export async function makeSession({ agent, attestation, edge, claims }: Omit<Call, 'url'>, key?: CryptoKey) {
  const setup = await sealTo(attestation);
  const enc = Buffer.from(setup.enc).toString('base64url');
  const payload = { v: 2, aud: agent, enc, att: sha256(attestation), suite: 5, ...claims };
  return { setup, ticket: await edge.ticket(payload, key) };
}

const FACTS: ReadonlySet<string> = new Set(['jti', 'tenant', 'class', 'model', 'revision', 'iat', 'deadlineMs']);

/** Sends one unary request in a sealed session. The first record holds its facts and its head. */
export async function askShort(request: ShortRequest): Promise<ShortAnswer> {
  const { lane: number = 1, setup = await sealTo(request.attestation) } = request;
  const given = Object.entries(request.claims ?? {});
  const claims = (facts: boolean) => Object.fromEntries(given.filter(([name]) => FACTS.has(name) === facts));
  const att = sha256(request.attestation);
  const enc = Buffer.from(setup.enc).toString('base64url');
  const ticket =
    request.ticket ?? (await request.edge.ticket({ v: 2, aud: request.agent, enc, att, suite: 5, ...claims(false) }));
  const model = (request.head?.model as string | undefined) ?? 'test-en';
  const iat = Math.floor(Date.now() / 1_000);
  const own = { jti: randomUUID(), tenant: 'dev', class: 'default', model, iat, deadlineMs: 60_000, ...claims(true) };
  const facts = new TextEncoder().encode(JSON.stringify(own));
  const { sealer, opener } = edgeCounters(await openSealedSession(setup, ticket), number);
  let first = true;
  const seal = (plaintext: Uint8Array, final: boolean) => {
    const packs = first;
    first = false;
    return packs ? sealer.pack([facts, plaintext], final) : sealer.seal(plaintext, final);
  };
  const { traceparent } = request;
  const headers = { 'auricle-ticket': ticket, ...(traceparent !== undefined && { traceparent }) };
  return exchange(request, headers, { seal }, opener);
}

async function exchange(
  request: ShortRequest,
  headers: Record<string, string>,
  sealer: Sealer,
  opener: Opener,
): Promise<ShortAnswer> {
  const outgoing = httpRequest(`${request.url}/v1/short`, {
    method: 'POST',
    agent: connections,
    headers: { 'content-type': 'application/auricle-sealed', ...headers },
    ...(request.signal && { signal: request.signal }),
  });
  const sent = sendBody(request, outgoing, sealer).catch(() => {});
  const incoming = await new Promise<IncomingMessage>((resolve, reject) => {
    outgoing.on('response', resolve);
    outgoing.on('error', reject);
  });
  const status = incoming.statusCode ?? 0;
  if (status !== 200) {
    const parts: Buffer[] = [];
    for await (const part of incoming) parts.push(part);
    await sent;
    const { reason, retryAfter } = JSON.parse(Buffer.concat(parts).toString());
    return { status, reason, events: [], whole: false, ...(retryAfter !== undefined && { retryAfter }) };
  }
  const events: AnswerEvent[] = [];
  try {
    for await (const chunk of incoming) {
      for await (const record of opener.open(chunk)) {
        if (!record.ok) throw new Error(`answer: ${record.refusal.detail}`);
        const read = request.read ?? readEvent;
        const event = read(record.value.plaintext) as AnswerEvent;
        events.push(event);
        request.onEvent?.(event);
      }
    }
  } catch (error) {
    if (!request.signal?.aborted && (error as NodeJS.ErrnoException).code !== 'ECONNRESET') throw error;
  }
  await sent;
  const inOnePiece = incoming.headers['content-length'] !== undefined;
  return { status, events, whole: opener.finished(), inOnePiece };
}

async function sendBody(request: ShortRequest, outgoing: ClientRequest, sealer: Sealer) {
  const gone = new Promise<void>((resolve) => outgoing.once('close', () => resolve()));
  let index = 0;
  const write = async (plaintext: Uint8Array, final: boolean) => {
    const record = await sealer.seal(plaintext, final);
    const sent = request.tamper ? request.tamper(record, index) : record;
    index++;
    if (!sent || outgoing.destroyed) return;
    if (!outgoing.write(sent)) await Promise.race([new Promise((resolve) => outgoing.once('drain', resolve)), gone]);
  };
  const head = {
    v: 1,
    task: 'transcribe',
    dialect: 'openai-audio',
    contentType: request.contentType,
    model: 'test-en',
    ...request.head,
  };
  await write(new TextEncoder().encode(JSON.stringify(head)), false);
  for await (const segment of segments(request.body)) await write(segment, false);
  await write(new Uint8Array(0), true);
  outgoing.end();
}
