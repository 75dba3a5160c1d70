// A pool agent in a few lines: joins the roster, opens what is sealed to it, answers what a test wants. It stands in
// for the network: a test hands its `fetch` to the Worker in place of the real one.

import { exports } from 'cloudflare:workers';
import { CompactSign, compactVerify, exportJWK, generateKeyPair, importJWK } from 'jose';
import { type BodyPiece, type CallEvent, encodeBody } from '../../shared/kserve/call.ts';
import type { ModelDescription } from '../../shared/pool/description.ts';
import type { AgentMessage, Load } from '../../shared/pool/heartbeat.ts';
import { createOpener, createSealer, type Opener } from '../../shared/seal/records.ts';
import { agentCounters, numberAt, openSealedSession } from '../../shared/seal/sealed-session.ts';
import { generateSealKey, type SealPrivateKey, setupRecipient } from '../../shared/seal/setup.ts';
import { openRead, openStream } from '../../shared/seal/streams.ts';
import type { AnswerEvent } from '../../shared/speech/transcript.ts';
import { keys, makeAttestation, makePoolToken } from '../edge/authority.ts';
import { publicHalf } from '../edge/bindings.ts';

export const REVISION = `sha256:${'a'.repeat(64)}`;

type Event = AnswerEvent | CallEvent | BodyPiece | 'cut';

/** A request as the agent received it. */
export interface Received {
  readonly ticket: Record<string, unknown>;
  readonly head: Record<string, unknown>;
  /** Reads the next piece of the caller's body; `undefined` at its end. Throws when the body was cut. */
  read(): Promise<Uint8Array | undefined>;
  /** The whole body. */
  all(): Promise<Uint8Array>;
}

/** Yields the events after `ready`; `cut` breaks the connection. */
export type Script = (received: Received) => AsyncGenerator<Event>;

export const segment = (index: number, text: string): Extract<AnswerEvent, { type: 'segment' }> => ({
  type: 'segment',
  index,
  start: index,
  end: index + 0.9,
  text,
  confidence: 0.9,
  logProbability: -0.1,
  words: text
    .split(' ')
    .map((word, at) => ({ word, start: index + at * 0.1, end: index + at * 0.1 + 0.05, confidence: 0.9 })),
});

export const final = (segments = 1): Extract<AnswerEvent, { type: 'final' }> => ({
  type: 'final',
  model: 'reference-en',
  revision: REVISION,
  language: 'en',
  durationSeconds: 8.47,
  speechSeconds: 6,
  segments,
});

/** Reads the body, tells its text fields and says two segments. */
export const ordinary: Script = async function* (received) {
  const form = readFields(await received.all(), String(received.head.contentType));
  yield { type: 'form', fields: form };
  yield segment(0, 'hello there');
  yield segment(1, 'general kenobi');
  yield final(2);
};

export interface Options {
  readonly agent?: string;
  readonly pool?: string;
  readonly zone?: string;
  readonly attestationSeconds?: number;
}

export class FakeAgent {
  script: Script = ordinary;
  /** Answers instead of the sealed exchange: an error page, a refusal, an exception for a dead host. */
  plain: (() => Response | Promise<Response>) | undefined;
  /** The agent's side of `GET /v1/stream`, where a test needs one. */
  upgrade: ((request: Request) => Promise<Response>) | undefined;
  /** Answers in one piece with its length, once all is there. */
  whole = false;
  /** Changes the answer in transit. */
  change: (bytes: ArrayBuffer) => ArrayBuffer = (bytes) => bytes;
  /** Tickets and numbers of the unary requests, in their order. */
  readonly unary: { readonly ticket: string; readonly number: number }[] = [];
  /** Its models accept live streams. */
  live = false;
  /** Speech that its models were trained on. */
  hears: 'people' | 'synthetic' | undefined;
  /** Revision that it serves. */
  revision = REVISION;
  /** Further revisions of its models. */
  beside: readonly Partial<ModelDescription>[] = [];
  /** Task of its models. */
  task: 'transcribe' | 'synthesize' = 'transcribe';
  accelerator: 'cpu' | 'gpu' = 'cpu';
  requests = 0;
  readonly seen: Received[] = [];
  readonly name: string;
  readonly pool: string;
  readonly zone: string;
  readonly boot = crypto.randomUUID();
  readonly endpoint: string;
  readonly messages: Record<string, unknown>[] = [];
  attestation = '';
  seq = 0;
  closed: Promise<{ code: number; reason: string }> | undefined;
  #seal: { privateKey: SealPrivateKey } | undefined;
  #signKey: CryptoKey | undefined;
  #attest: () => Promise<string> = () => Promise.reject(new Error('not made yet'));
  #socket: TestSocket | undefined;

  private constructor(options: Options) {
    const { agent = `agent-${crypto.randomUUID().slice(0, 8)}`, pool = 'aks-test', zone = 'eu' } = options;
    this.name = agent;
    this.pool = pool;
    this.zone = zone;
    this.endpoint = `http://${agent}.test`;
  }

  static async make(options: Options = {}): Promise<FakeAgent> {
    const double = new FakeAgent(options);
    const { publicJwk, privateKey } = await generateSealKey();
    const sign = await generateKeyPair('ES256', { extractable: true });
    double.#seal = { privateKey };
    double.#signKey = sign.privateKey as CryptoKey;
    const signPublic = (await exportJWK(sign.publicKey)) as JsonWebKey;
    double.#attest = () =>
      makeAttestation({
        agent: double.name,
        sealKey: publicJwk,
        signKey: signPublic,
        ...(options.attestationSeconds !== undefined && { lifeSeconds: options.attestationSeconds }),
      });
    await double.attest();
    return double;
  }

  /** Has its keys attested again, as of now. */
  async attest(): Promise<void> {
    this.attestation = await this.#attest();
  }

  /** Opens the socket and sends nothing yet. */
  async connect(token?: string): Promise<Response> {
    const answer = await exports.default.fetch(
      new Request('http://edge.test/v1/pools/heartbeat', {
        headers: {
          upgrade: 'websocket',
          authorization: `Bearer ${token ?? (await makePoolToken(this.pool, this.zone))}`,
        },
      }),
    );
    const socket = answer.webSocket;
    if (!socket) return answer;
    socket.accept();
    this.#socket = socket;
    this.closed = new Promise((resolve) => {
      socket.addEventListener('close', ({ code, reason }) => resolve({ code, reason }));
    });
    socket.addEventListener('message', ({ data }) => {
      this.messages.push(JSON.parse(String(data)));
    });
    return answer;
  }

  /** Joins the roster: hello and one report. */
  async join(models = ['reference-en'], languages = ['en']): Promise<void> {
    await this.connect();
    await this.send(this.hello(models, languages));
    await this.send(this.report());
    await this.settled();
  }

  hello(models = ['reference-en'], languages = ['en']): AgentMessage {
    const { name: agent, pool, zone, endpoint, boot, attestation } = this;
    this.seq += 1;
    return {
      v: 1,
      type: 'hello',
      boot,
      seq: this.seq,
      attestation,
      at: Date.now(),
      description: {
        agent,
        pool,
        zone,
        region: 'westeurope',
        platform: 'AKS',
        endpoint,
        accelerator: this.accelerator,
        slots: 2,
        suites: [5],
        models: models.flatMap((name) => {
          const own = {
            name,
            task: this.task,
            languages,
            revision: this.revision,
            precision: 'int8' as const,
            stage: 'full' as const,
            loaded: 1_700_000_000,
            ...(this.live && { live: true }),
            ...(this.hears && { hears: this.hears }),
          };
          return [own, ...this.beside.map((other) => ({ ...own, ...other }))];
        }),
      },
    };
  }

  report(change: Partial<Load & { boot: string; seq: number }> = {}): AgentMessage {
    const { draining = false, engineReady = true, boot = this.boot, full } = change;
    this.seq = change.seq ?? this.seq + 1;
    const queued = { realtime: 0, interactive: 0, default: 0, batch: 0 };
    return {
      v: 1,
      type: 'report',
      boot,
      seq: this.seq,
      load: { busy: 0, queued, serviceMs: 50, draining, engineReady, ...(full && { full }) },
      at: Date.now(),
    };
  }

  async sign(message: unknown): Promise<string> {
    return new CompactSign(new TextEncoder().encode(JSON.stringify(message)))
      .setProtectedHeader({ alg: 'ES256', kid: this.name })
      .sign(this.#signKey as CryptoKey);
  }

  async send(message: AgentMessage): Promise<void> {
    this.#socket?.send(await this.sign(message));
  }

  sendRaw(text: string): void {
    this.#socket?.send(text);
  }

  leave(): void {
    this.#socket?.close();
  }

  /** Resolves when the roster has read everything sent so far: it acknowledges an empty audit message after it. */
  async settled(): Promise<void> {
    this.seq += 1;
    const { seq, boot } = this;
    await this.send({ v: 1, type: 'audit', boot, seq, events: [] });
    await this.waitFor((message) => message.type === 'ack' && message.seq === seq);
  }

  /** Resolves with the first message of the roster that `wanted` accepts. */
  async waitFor(wanted: (message: Record<string, unknown>) => boolean): Promise<Record<string, unknown>> {
    for (;;) {
      const found = this.messages.find(wanted);
      if (found) return found;
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }

  /** Ticket and keys of a stream, or the refusal of a seal that is not for this agent. */
  async takeCall(request: Request) {
    const ticketText = request.headers.get('auricle-ticket') ?? '';
    const ticket = await readTicket(ticketText);
    if (!this.#serves(ticket.revision)) return Response.json({ reason: 'misdirected' }, { status: 421 });
    const enc = Buffer.from(request.headers.get('auricle-enc') ?? '', 'base64url');
    const setup = await this.#setUp(enc);
    if (!setup.ok) return Response.json({ reason: setup.refusal.reason }, { status: 400 });
    const { request: requestKey, answer: answerKey } = await setup.value.keysFor(ticketText);
    const opener = await createOpener(requestKey, 5);
    return { ticket, records: recordsOf(request, opener), opener, sealer: await createSealer(answerKey, 5) };
  }

  /** The same of a unary request; its facts join the ticket. */
  async #takeRequest(request: Request) {
    const ticketText = request.headers.get('auricle-ticket') ?? '';
    const ticket = await readTicket(ticketText);
    const setup = await this.#setUp(Buffer.from(String(ticket.enc), 'base64url'));
    if (!setup.ok) return Response.json({ reason: setup.refusal.reason }, { status: 400 });
    const lane = await openSealedSession(setup.value, ticketText);
    const reader = (request.body as ReadableStream<Uint8Array>).getReader();
    const start = (await reader.read()).value ?? new Uint8Array();
    const number = numberAt(start) ?? 0;
    this.unary.push({ ticket: ticketText, number });
    const { sealer, opener } = agentCounters(lane, number);
    const records = openRead(reader, opener, start);
    const first = await records.next();
    if (first.done || !first.value.ok) return Response.json({ reason: 'ticket_invalid' }, { status: 403 });
    const facts = JSON.parse(new TextDecoder().decode(first.value.value.plaintext)) as Record<string, unknown>;
    if (!this.#serves(facts.revision)) return Response.json({ reason: 'misdirected' }, { status: 421 });
    return { ticket: { ...ticket, ...facts }, records, sealer };
  }

  #serves(revision: unknown): boolean {
    return [this, ...this.beside].some((one) => one.revision === revision);
  }

  #setUp(enc: Uint8Array) {
    return setupRecipient((this.#seal as { privateKey: SealPrivateKey }).privateKey, enc, 5, this.attestation);
  }

  /** The agent's side of `POST /v1/short`. */
  async answer(request: Request): Promise<Response> {
    this.requests += 1;
    if (this.plain) return this.plain();
    if (this.upgrade && request.headers.get('upgrade')) return this.upgrade(request);
    const taken = await this.#takeRequest(request);
    if (taken instanceof Response) return taken;
    const { ticket, records, sealer } = taken;
    const script = this.script;
    const seen = this.seen;
    const { name } = this;
    const revision = String(ticket.revision);

    const events = (async function* (): AsyncGenerator<Event> {
      yield { type: 'ready', agent: name, model: String(ticket.model), revision };
      const head = await records.next();
      if (head.done || !head.value.ok) throw new Error('no head');
      const received = makeReceived(ticket, JSON.parse(new TextDecoder().decode(head.value.value.plaintext)), records);
      seen.push(received);
      for await (const event of script(received)) {
        const isFinal = event !== 'cut' && event.type === 'final' && event.revision === REVISION;
        yield isFinal ? { ...event, revision } : event;
      }
    })();
    const body = new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          const step = await events.next();
          if (step.done) return controller.close();
          if (step.value === 'cut') return controller.error(new Error('connection reset'));
          const { type } = step.value;
          const plaintext =
            type === 'body' ? encodeBody(step.value.bytes) : new TextEncoder().encode(JSON.stringify(step.value));
          controller.enqueue(await sealer.seal(plaintext, type === 'final' || type === 'refusal'));
        },
        cancel: async () => {
          await events.return(undefined).catch(() => {});
        },
      },
      { highWaterMark: 0 },
    );
    const headers = { 'content-type': 'application/auricle-sealed' };
    if (!this.whole) return new Response(body, { headers });
    const bytes = this.change(await new Response(body).arrayBuffer());
    return new Response(bytes, { headers: { ...headers, 'content-length': String(bytes.byteLength) } });
  }
}

async function readTicket(text: string): Promise<Record<string, unknown>> {
  const { payload } = await compactVerify(text, await importJWK(publicHalf(keys.ticket), 'ES256'));
  return JSON.parse(new TextDecoder().decode(payload)) as Record<string, unknown>;
}

const recordsOf = ({ body }: Request, opener: Opener) =>
  body ? openStream(body as ReadableStream<Uint8Array>, opener) : noRecords();

async function* noRecords(): ReturnType<typeof openStream> {}

function makeReceived(
  ticket: Record<string, unknown>,
  head: Record<string, unknown>,
  records: ReturnType<typeof openStream>,
): Received {
  const read = async () => {
    const step = await records.next();
    if (step.done) return undefined;
    if (!step.value.ok) throw new Error(step.value.refusal.detail);
    return step.value.value.plaintext;
  };
  return {
    ticket,
    head,
    read,
    async all() {
      const pieces: Uint8Array[] = [];
      for (let piece = await read(); piece; piece = await read()) pieces.push(piece);
      return Buffer.concat(pieces);
    },
  };
}

/** Text fields of a multipart body, as an agent tells them: without `[]`, files left out. */
export function readFields(body: Uint8Array, contentType: string): Record<string, string[]> {
  const boundary = /boundary=(.*)$/.exec(contentType)?.[1] ?? '';
  const fields: Record<string, string[]> = {};
  for (const part of Buffer.from(body).toString('latin1').split(`--${boundary}`)) {
    const match = /name="([^"]*)"(; filename=)?[\s\S]*?\r\n\r\n([\s\S]*)\r\n$/.exec(part);
    if (!match || match[2]) continue;
    const name = (match[1] as string).replace(/\[\]$/, '');
    fields[name] = [...(fields[name] ?? []), Buffer.from(match[3] as string, 'latin1').toString('utf8')];
  }
  return fields;
}
