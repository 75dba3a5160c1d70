import type { IncomingMessage } from 'node:http';
import type { JSONWebKeySet } from 'jose';
import { limits } from '../../../shared/limits.ts';
import { refuse } from '../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../shared/result.ts';
import { concat } from '../../../shared/seal/bytes.ts';
import { agentEnds, type Lane, NUMBER_BYTES, numberAt, openLane } from '../../../shared/seal/lane.ts';
import type { Opened, PackingSealer } from '../../../shared/seal/records.ts';
import { openRead } from '../../../shared/seal/streams.ts';
import type { Doorway } from './admit.ts';
import { nodeAead } from './aead.ts';
import { bodyOf } from './body.ts';
import type { Desk, ServedModel } from './desk.ts';
import { type Keys, sha256 } from './keys.ts';
import { createLaneTicketReader, type Facts, type LaneTicket, laneFacts } from './ticket.ts';

/** A lane whose ticket was verified. */
export interface OpenedLane {
  readonly ticket: LaneTicket;
  /** Tells it apart from every other in the replay cache. */
  readonly name: string;
  readonly lane: Lane;
}

export type ReadLane = (token: string, now: number) => Promise<Result<OpenedLane>>;

/** Verifies the ticket of a lane once, and remembers the lane: its keys serve all requests that come with it. */
export function createLaneReader(agent: string, edgeKeys: JSONWebKeySet, keys: Pick<Keys, 'setup'>): ReadLane {
  const readTicket = createLaneTicketReader(agent, edgeKeys);
  const known = new Map<string, OpenedLane>();
  return async (token, now) => {
    const before = known.get(token);
    if (before && now < (before.ticket.exp + limits.clockSkewSeconds.value) * 1_000) return ok(before);
    known.delete(token);
    const read = await readTicket(token, now);
    if (!read.ok) return read;
    const { enc, suite, att } = read.value;
    const bytes = new Uint8Array(Buffer.from(enc, 'base64url'));
    const setup = await keys.setup({ enc: bytes, suite, attestationDigest: att, now });
    if (!setup.ok) return setup;
    const opened = { ticket: read.value, name: sha256(token), lane: await openLane(setup.value, token, nodeAead) };
    // Maps keep the order of insertion, so the first entry is the oldest.
    const [oldest] = known.keys();
    if (known.size >= limits.sealSetups.value && oldest !== undefined) known.delete(oldest);
    known.set(token, opened);
    return ok(opened);
  };
}

/** A request on a lane that was let in: of its body only what says what it is was taken. */
export interface AdmittedOnLane {
  readonly ticket: Facts;
  readonly model: ServedModel;
  readonly sealer: PackingSealer;
  readonly records: AsyncGenerator<Result<Opened>>;
}

const invalid = (detail: string) => no(refuse('ticket_invalid', undefined, `lane: ${detail}`));

/** As `admit`, with the facts in the first record of the body, for which the request has `limits.agentHeaderMs`. */
export async function admitOnLane(
  desk: Pick<Desk, 'now' | 'readLane' | 'model' | 'replays'>,
  token: string,
  incoming: IncomingMessage,
  enter: Doorway['enter'],
): Promise<Result<AdmittedOnLane>> {
  const now = desk.now();
  const opened = await desk.readLane(token, now);
  if (!opened.ok) return opened;
  const reader = bodyOf(incoming).getReader();
  const late = setTimeout(() => reader.cancel().catch(() => {}), limits.agentHeaderMs.value);
  try {
    const start = await readStart(reader);
    const number = start && numberAt(start);
    const admitted =
      number === undefined
        ? invalid('number')
        : await admitFirst({ desk, enter, opened: opened.value, number, reader, start });
    if (!admitted.ok) await reader.cancel().catch(() => {});
    return admitted;
  } finally {
    clearTimeout(late);
  }
}

/** Enough of a body to tell its number; `undefined` when it is shorter. */
async function readStart(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<Uint8Array | undefined> {
  let start = new Uint8Array();
  while (start.length < NUMBER_BYTES) {
    const { done, value } = await reader.read().catch(() => ({ done: true, value: undefined }) as const);
    if (done) return undefined;
    start = start.length === 0 ? (value as Uint8Array<ArrayBuffer>) : concat(start, value);
  }
  return start;
}

interface FirstRecord {
  readonly desk: Pick<Desk, 'now' | 'model' | 'replays'>;
  readonly enter: Doorway['enter'];
  readonly opened: OpenedLane;
  readonly number: number;
  readonly reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly start: Uint8Array | undefined;
}

async function admitFirst({
  desk,
  enter,
  opened: { name, lane },
  number,
  reader,
  start,
}: FirstRecord): Promise<Result<AdmittedOnLane>> {
  const { sealer, opener } = agentEnds(lane, number);
  const records = openRead(reader, opener, start);
  const first = await records.next();
  // Whoever cannot seal has no ticket, whatever the header says.
  if (first.done || !first.value.ok) return invalid('no facts');
  const facts = laneFacts.safeParse(parse(first.value.value.plaintext)).data;
  if (!facts) return invalid('facts');
  const now = desk.now();
  const expires = facts.iat + limits.ticketSeconds.value;
  const skew = limits.clockSkewSeconds.value;
  if (facts.iat > now / 1_000 + skew || expires + skew <= now / 1_000) return invalid('facts of another time');
  const model = desk.model(facts.model);
  if (!model) return no(refuse('misdirected', undefined, 'model'));
  const entered = enter(facts);
  if (!entered.ok) return entered;
  // The number is what must not come twice: two answers under one of them would open both.
  const fresh = desk.replays.admit({ jti: `${name} ${number}`, exp: expires }, now);
  if (!fresh.ok) return fresh;
  return ok({ ticket: facts, model, sealer, records });
}

function parse(plaintext: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(plaintext));
  } catch {
    return undefined;
  }
}
