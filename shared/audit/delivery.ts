// Delivery of events from an outbox of the edge to the log of their region.
//
//   POST /api/audit/{zone}/events   delivery → 200 acknowledgement   (callers.ts: the edge, for the tenant of the outbox)
//
// An outbox stores its rows and resends them in order until they are acknowledged. An acknowledgement covers what the log
// holds, not what was received.
import { z } from 'zod';
import { zoneName } from '../names.ts';
import { openNote, type Signer, signNote, type Verifier } from './note.ts';

/** Rows of one delivery of an outbox: one call a second carries what a busy gate writes. */
export const DELIVERY_ROWS_MAX = 256;

/** Name of an outbox: `gate/<tenant>/<zone>` or `roster/<zone>`. */
const producerName = z.string().regex(/^(gate\/(@anonymous|[^\s/+]{1,128})|roster)\/[a-z0-9][a-z0-9_.-]{0,62}$/u);

/** Producer of the functions' own events; each process is an epoch of it. */
export const ownProducer = (zone: string): string => `functions/${zone}`;

export const delivery = z.object({
  v: z.literal(1),
  producer: producerName,
  /** Epoch of the outbox that its numbers belong to. */
  epoch: z.uuid(),
  /** Lowest number that the outbox still has or will assign: a lower one that the log lacks is lost. */
  oldest: z.number().int().min(1),
  /** Several events in one row have consecutive numbers; `to` is the last. `t`: time of writing, epoch ms. */
  rows: z
    .array(z.object({ to: z.number().int().min(1), t: z.number().int(), events: z.array(z.unknown()).min(1) }))
    .max(DELIVERY_ROWS_MAX),
});
export type Delivery = z.infer<typeof delivery>;

export const acknowledgement = z.object({
  /** A signed note: `formatAck`. */
  note: z.string().max(2_048),
});

export interface Ack {
  /** Origin of the log. */
  readonly origin: string;
  readonly producer: string;
  readonly epoch: string;
  /** The log has all events of that epoch up to this one. */
  readonly upTo: number;
}

/** Returns the name of the log of a region and a year. */
export const originOfLog = (base: string, zone: string, year: number): string => `${base}/${zone}/${year}`;

export const zoneOfProducer = (producer: string): string => zoneName.parse(producer.split('/').at(-1));

/**
 * Returns the name of the key that acknowledges for a log: the log's own key under another name, so that
 * neither signature passes for the other.
 */
export const ackName = (origin: string): string => `${origin}/ack`;

/**
 * Signs an acknowledgement, so that an impostor of the functions cannot make an outbox delete rows that the
 * log lacks.
 */
export const signAck = ({ origin, producer, epoch, upTo }: Ack, signer: Signer): Promise<string> =>
  signNote(`${ackName(origin)}\n${producer}\n${epoch}\n${upTo}\n`, [signer]);

/** Reads the origin of an acknowledgement before verification, to find its key. */
export const originOfAck = (note: string): string | undefined => /^(\S+)\/ack\n/.exec(note)?.[1];

export async function openAck(note: string, verifier: Verifier): Promise<Ack | undefined> {
  const opened = await openNote(new TextEncoder().encode(note), [verifier]);
  const [name, producer = '', epoch = '', count = '', ...rest] = opened?.text.split('\n') ?? [];
  const origin = originOfAck(note);
  if (origin === undefined || name !== verifier.name || rest.length !== 1 || rest[0] !== '') return undefined;
  if (ackName(origin) !== name || !/^(0|[1-9]\d{0,15})$/.test(count)) return undefined;
  return { origin, producer, epoch, upTo: Number(count) };
}
