// The upstream of every gateway, in a process of its own. A plain request gets a fixed JSON answer; a sealed one gets the
// same words as an agent seals them. Signed heartbeats keep it in the roster, as any agent.
import { createCipheriv } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import process from 'node:process';
import { packMessages } from '../../../shared/seal/pack.ts';
import { type Opener, openerFrom } from '../../../shared/seal/records.ts';
import { numberAt } from '../../../shared/seal/sealed-session.ts';
import { frameKey } from '../../../shared/seal/sframe.ts';
import { suites } from '../../../shared/seal/suites.ts';
import type { AnswerEvent } from '../../../shared/speech/transcript.ts';
import { AGENT, joinRoster, type Told as RosterTold } from '../join-roster.ts';
import { createPlainServer, type Serve } from './plain-http.ts';
import { createLaneSealer, createRecipient } from './seal-double.ts';
import { MODEL, REVISION, WORDS } from './words.ts';

/** Sealed bodies that the real code opens before the measuring starts. */
const PROOFS = 2;

interface Told extends RosterTold {
  /** Bytes that the opened body must have. */
  readonly bodyBytes: number;
}

const json = Buffer.from(JSON.stringify({ text: WORDS }));
const plainAnswer = Buffer.concat([
  Buffer.from(`HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${json.length}\r\n\r\n`),
  json,
]);
const sealedHead = Buffer.from(
  'HTTP/1.1 200 OK\r\ncontent-type: application/auricle-sealed\r\ntransfer-encoding: chunked\r\n\r\n',
);
const withLength = (body: Buffer) =>
  Buffer.concat([
    Buffer.from(
      `HTTP/1.1 200 OK\r\ncontent-type: application/auricle-sealed\r\ncontent-length: ${body.length}\r\n\r\n`,
    ),
    body,
  ]);
const lastChunk = Buffer.from('0\r\n\r\n');
const asChunk = (bytes: Buffer) =>
  Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]);
const event = (value: AnswerEvent) => Buffer.from(JSON.stringify(value));

/** The answer for the floor: the words, sealed with a key of zeros. */
const floorAnswer = (() => {
  const cipher = createCipheriv('aes-256-gcm', Buffer.alloc(32), Buffer.alloc(12)).setAAD(Buffer.alloc(6));
  return withLength(Buffer.concat([cipher.update(json), cipher.final(), cipher.getAuthTag()]));
})();

const seconds = WORDS.split(' ').length;
const ready = event({ type: 'ready', agent: AGENT, model: MODEL, revision: REVISION });
const rest = [
  event({ type: 'form', fields: { model: [MODEL] } }),
  event({
    type: 'segment',
    index: 0,
    start: 0,
    end: seconds,
    text: WORDS,
    confidence: 0.9,
    logProbability: -0.1,
    // As agents leave them out of an answer whose form asks for the text alone.
    words: [],
  }),
];
const final = event({
  type: 'final',
  model: MODEL,
  revision: REVISION,
  language: 'en',
  durationSeconds: seconds,
  speechSeconds: seconds,
  segments: 1,
});

let attestation = '';
const recipient = createRecipient(() => attestation);
let unproved = 0;
let told: Told | undefined;

const header = (head: string, name: string) => new RegExp(`\\r\\n${name}: *([^\\r]+)`, 'i').exec(head)?.[1] ?? '';

/** Opens a sealed body with the real code and counts its bytes; an exit tells that a run measured something else. */
async function prove(sealed: Buffer, opener: Opener, heads: number, expected: number) {
  const opened = await opener.openWhole(sealed);
  if (!opened.ok) throw new Error(opened.refusal.detail);
  const bytes = opened.value.slice(heads).reduce((sum, { plaintext }) => sum + plaintext.length, 0);
  if (!opener.finished() || bytes !== expected) throw new Error(`opened ${bytes} bytes instead of ${expected}`);
  process.send?.({ proved: true });
}

/** Collects the body of a request that is verified; only the first few are. */
function proving(opener: () => Promise<Opener>, heads: number, end: () => void): ReturnType<Serve> {
  if (unproved === 0) return { end };
  unproved -= 1;
  const body: Buffer[] = [];
  return {
    bytes: (chunk) => body.push(Buffer.from(chunk)),
    end: () => {
      end();
      void opener().then((made) => prove(Buffer.concat(body), made, heads, told?.bodyBytes ?? 0));
    },
  };
}

const laneSealers = new Map<string, ReturnType<typeof createLaneSealer>>();
const packed = Buffer.from(packMessages([ready, ...rest, final]));

/** Answers as an agent that finishes at once: one piece, with its length. */
function serveSealed(head: string, send: (bytes: Buffer) => void): ReturnType<Serve> {
  const ticket = header(head, 'auricle-ticket');
  const enc = encOf(ticket);
  let seal = laneSealers.get(ticket);
  if (!seal) {
    seal = createLaneSealer(recipient.baseKey(enc, 'lane answer', ticket));
    laneSealers.set(ticket, seal);
  }
  const streams = /\r\ntransfer-encoding:/i.test(head);
  // A streamed body is still arriving when an agent starts its answer.
  if (streams) send(sealedHead);
  let number = 0;
  const end = () => {
    const record = seal(number, packed);
    send(streams ? Buffer.concat([asChunk(record), lastChunk]) : withLength(record));
  };
  const opener = async () => {
    const key = await frameKey(recipient.baseKey(enc, 'lane request', ticket), suites[5], 0n);
    return openerFrom(key, suites[5], { first: number * 2 ** 24, packs: true });
  };
  const proved = proving(opener, 2, end);
  return {
    bytes(chunk) {
      number ||= numberAt(chunk) ?? 0;
      proved.bytes?.(chunk);
    },
    end: proved.end,
  };
}

/** Encapsulated keys of sessions, by ticket. */
const encs = new Map<string, string>();

function encOf(ticket: string): string {
  const known = encs.get(ticket) ?? JSON.parse(Buffer.from(ticket.split('.')[1] ?? '', 'base64url').toString()).enc;
  encs.set(ticket, known);
  return known;
}

const serve: Serve = ({ head, send }) => {
  if (/\r\nbench-floor:/i.test(head)) return { end: () => send(floorAnswer) };
  if (!/\r\nauricle-ticket:/i.test(head)) return { end: () => send(plainAnswer) };
  return serveSealed(head, send);
};

async function join(told: Told): Promise<void> {
  await joinRoster(told, {
    sealKey: recipient.jwk,
    port: (server.address() as AddressInfo).port,
    onAttested(token) {
      attestation = token;
    },
  });
}

const server = createPlainServer(serve);
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));
process.on('message', (message: Told) => {
  unproved = PROOFS;
  if (!told) void join(message);
  told = message;
});
process.on('disconnect', () => process.exit(0));
