// The upstream of the edge's half, in a process of its own: an agent to the edge, attested and in the roster, that
// opens every record of every stream and answers at fixed frames; and, without any seal, the same for the bare relay.
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import process from 'node:process';
import { type WebSocket, WebSocketServer } from 'ws';
import type { LinkEvent } from '../../../shared/stream/link.ts';
import { createRecipient } from '../front/seal-double.ts';
import { MODEL, REVISION } from '../front/words.ts';
import { AGENT, joinRoster, type Told } from '../join-roster.ts';
import { createLedger } from './ledger.ts';
import { openRecords, sealRecords } from './stream-seal.ts';
import { aheadBy, eventAt, FRAME_BYTES, FRAME_MS, HEARD_EVERY, INTERIM_EVERY, SEGMENT_EVERY } from './traffic.ts';

export type DoubleOrder = { readonly join: Told } | { readonly count: 'read' | 'reset' };

const ledger = createLedger();
let attestation = '';
const recipient = createRecipient(() => attestation);
const seconds = (frame: number) => (frame * FRAME_MS) / 1_000;
/** `place` is the frame's in what its stream says. */
const isDue = (place: number) => place % INTERIM_EVERY === 0 || place % SEGMENT_EVERY === 0;

/** The bare peer: audio in, at the same frames the same words out. */
function serveBare(socket: WebSocket): void {
  const book = ledger.open();
  socket.on('message', (message: Buffer, isBinary) => {
    if (!isBinary) {
      socket.close(1000);
      return;
    }
    const frame = book.hear(book.bytes(), message);
    const ahead = aheadBy(book.stream(), SEGMENT_EVERY);
    if (isDue(frame + ahead)) socket.send(JSON.stringify(eventAt(frame, ahead)));
  });
}

function serveSealed(socket: WebSocket, ticket: string, enc: string): void {
  const book = ledger.open();
  const open = openRecords(recipient.baseKey(enc, 'request', ticket));
  const seal = sealRecords(recipient.baseKey(enc, 'answer', ticket));
  const say = (...events: LinkEvent[]) =>
    void socket.send(Buffer.concat(events.map((event) => seal(Buffer.from(JSON.stringify(event)), isLast(event)))));

  /** The edge joins frames that waited for the agent; each still has its own answer. */
  const hear = (position: number, audio: Buffer) => {
    for (let at = 0; at < audio.length; at += FRAME_BYTES) {
      hearFrame(position + at, audio.subarray(at, at + FRAME_BYTES));
    }
  };
  const hearFrame = (position: number, audio: Buffer) => {
    const frame = book.hear(position, audio);
    const ahead = aheadBy(book.stream(), SEGMENT_EVERY);
    const place = frame + ahead;
    const at = { position: frame * FRAME_BYTES, time: seconds(frame) };
    if (place % HEARD_EVERY === 0) say({ type: 'heard', ...at });
    if (isDue(place)) say(eventAt(frame, ahead));
    if (place % SEGMENT_EVERY !== 0) return;
    say({ type: 'checkpoint', ...at, index: place / SEGMENT_EVERY, state: 'A'.repeat(1_500) });
  };

  const control = (text: string) => {
    const said = JSON.parse(text) as { type: string; from?: unknown; id?: number };
    if (said.type === 'open') {
      if (said.from) ledger.moved();
      say({ type: 'ready', agent: AGENT, model: MODEL, revision: REVISION, language: 'en' });
    }
    if (said.type === 'finalize') say({ type: 'finalized', id: said.id ?? 0 });
    if (said.type !== 'end') return;
    const frames = book.bytes() / FRAME_BYTES;
    const time = seconds(frames);
    const segments = Math.floor((frames + aheadBy(book.stream(), SEGMENT_EVERY)) / SEGMENT_EVERY);
    const totals = { durationSeconds: time, speechSeconds: time, segments };
    say({ type: 'final', model: MODEL, revision: REVISION, language: 'en', ...totals });
    socket.close(1000);
  };

  socket.on('message', (message: Buffer) => {
    for (const { plaintext } of open(message)) {
      if (plaintext[0] === 1) hear(plaintext.readUIntBE(1, 6), plaintext.subarray(7));
      else control(plaintext.toString('utf8', 1));
    }
  });
}

const isLast = (event: LinkEvent) => event.type === 'final';

const server = createServer((_, response) => void response.writeHead(404).end());
const sockets = new WebSocketServer({ noServer: true, perMessageDeflate: false, maxPayload: 2 ** 21 });
const headerOf = (request: IncomingMessage, name: string) => String(request.headers[name] ?? '');

server.on('upgrade', (request, socket, head) => {
  sockets.handleUpgrade(request, socket, head, (upgraded) => {
    upgraded.on('error', () => {});
    if (request.url === '/bare') return serveBare(upgraded);
    serveSealed(upgraded, headerOf(request, 'auricle-ticket'), headerOf(request, 'auricle-enc'));
  });
});
server.listen({ port: 0, host: '127.0.0.1', backlog: 1_024 }, () =>
  process.send?.({ port: (server.address() as AddressInfo).port }),
);

process.on('message', async (order: DoubleOrder) => {
  if ('join' in order) {
    const { port } = server.address() as AddressInfo;
    await joinRoster(order.join, {
      sealKey: recipient.jwk,
      port,
      live: true,
      onAttested(token) {
        attestation = token;
      },
    });
    return;
  }
  if (order.count === 'reset') ledger.reset();
  process.send?.({ counts: ledger.counts() });
});
process.on('disconnect', () => process.exit(0));
