import { ackName, acknowledgement, DELIVERY_ROWS_MAX, openAck, originOfAck } from '../../shared/audit/delivery.ts';
import { isEd25519Text, keysIn, yearOfName } from '../../shared/audit/key-years.ts';
import { openVerifier } from '../../shared/audit/note.ts';
import { backOffMs } from '../../shared/back-off.ts';
import { fromBase64 } from '../../shared/base64.ts';
import { MiB } from '../../shared/bytes.ts';
import { signService } from '../functions/call-functions.ts';
import { type Bindings, readSettings, type Settings } from '../settings.ts';
import type { AuditLog } from '../settings-schema.ts';
import type { Outbox } from './outbox.ts';

/** Events of one delivery; the rest goes with the next one. A row alone has at most 64 events of 16 KiB. */
const DELIVERY_CHARACTERS = 1 * MiB;
/** Time an event waits for others before the outbox delivers: an event reaches the log within seconds. */
const DELIVERY_DELAY_MS = 500;
/** Pause before an outbox queries whether the log has a delivery; the log commits once a second. */
const DELIVERY_CONFIRM_MS = 1_000;
/** Age at which an unconfirmed delivery counts as lost and is sent again: one life of a log lease. */
const DELIVERY_RESEND_MS = 15_000;
/**
 * Longest pause between two tries to deliver; the first is DELIVERY_CONFIRM_MS, and each next one doubles.
 */
export const DELIVERY_RETRY_MAX_MS = 60_000;
/** Longest call of one delivery before it is tried again. */
const DELIVERY_TIMEOUT_MS = 10_000;

const BACK_OFF = { firstMs: DELIVERY_CONFIRM_MS, maxMs: DELIVERY_RETRY_MAX_MS };

/** Tenant of outboxes without one: the fleet's operators. */
const FLEET = '@fleet';

/**
 * Delivers an outbox to the log of its zone until the log acknowledges everything (shared/audit/delivery.ts).
 * One call at a time, none while the outbox is empty, and no request waits for it. State is in memory: after
 * a restart it resends the outbox, and the log drops repeats.
 */
export class Shipper {
  readonly #outbox: Outbox;
  readonly #sql: SqlStorage;
  readonly #env: Bindings;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #busy = false;
  /** Highest number sent; time since which the log has made no progress, epoch ms. */
  #sent = 0;
  #since = 0;
  #failures = 0;
  #producer: string | undefined;

  /** `producer` is undefined where the runtime does not pass an object its name, as in an alarm. */
  constructor(outbox: Outbox, sql: SqlStorage, env: Bindings, producer: string | undefined) {
    this.#outbox = outbox;
    this.#sql = sql;
    this.#env = env;
    this.#producer = producer;
    if (!env.AUDIT_LOGS) return;
    sql.exec('CREATE TABLE IF NOT EXISTS ship (id INTEGER PRIMARY KEY CHECK (id = 0), producer TEXT NOT NULL)');
    if (producer !== undefined) sql.exec('INSERT OR IGNORE INTO ship VALUES (0, ?)', producer);
    this.nudge();
  }

  /** Starts a delivery if something may have been written. */
  nudge(): void {
    if (this.#timer !== undefined || this.#busy || !this.hasWork) return;
    this.#wait(DELIVERY_DELAY_MS);
  }

  /** Reports a configured log that lacks events of the outbox. */
  get hasWork(): boolean {
    return this.#env.AUDIT_LOGS !== undefined && !this.#outbox.isEmpty;
  }

  #wait(ms: number): void {
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#busy = true;
      void this.#deliver()
        .catch(() => undefined)
        .then((pause) => {
          this.#busy = false;
          if (this.hasWork) this.#wait(pause ?? this.#backOff());
        });
    }, ms);
  }

  #backOff(): number {
    this.#failures += 1;
    // Events in flight may be lost with the answer.
    this.#sent = 0;
    // Without jitter: each Gate fails at times of its own.
    return backOffMs(this.#failures - 1, BACK_OFF, 1);
  }

  /** Makes one call. Returns the delay until the next; `undefined` on failure. */
  async #deliver(): Promise<number | undefined> {
    const [row] = this.#sql.exec<{ producer: string }>('SELECT producer FROM ship').toArray();
    this.#producer ??= row?.producer;
    const producer = this.#producer;
    const zone = producer?.split('/').at(-1) ?? '';
    const settings = readSettings(this.#env);
    const [baseUrl, log] = [settings.functionsUrls.get(zone), settings.auditLogs.get(zone)];
    if (producer === undefined || baseUrl === undefined || !log) return undefined;
    const now = Date.now();
    if (now - this.#since > DELIVERY_RESEND_MS) [this.#sent, this.#since] = [0, now];
    const { oldest } = this.#outbox;
    const rows = this.#outbox.rows(Math.max(this.#sent, oldest - 1), DELIVERY_ROWS_MAX, DELIVERY_CHARACTERS);
    const { epoch } = this.#outbox;
    const head = JSON.stringify({ v: 1, producer, epoch, oldest }).slice(0, -1);
    const note = await post(
      `${baseUrl}/api/audit/${zone}/events`,
      `${head},"rows":[${rows?.json ?? ''}]}`,
      producer,
      settings,
    );
    if (note === undefined) return undefined;
    const upTo = await readAck(note, log, { zone, producer, epoch });
    if (upTo === undefined) return undefined;
    this.#failures = 0;
    if (rows) this.#sent = Math.max(this.#sent, rows.last);
    if (upTo >= oldest) {
      this.#outbox.forget(upTo);
      this.#since = now;
    }
    return this.#outbox.rows(this.#sent, 1, 0) ? DELIVERY_DELAY_MS : DELIVERY_CONFIRM_MS;
  }
}

/** Posts a delivery; returns the signed note of the answer. */
async function post(url: string, body: string, producer: string, settings: Settings): Promise<string | undefined> {
  const [kind, owner] = producer.split('/');
  const claims = kind === 'roster' ? { tenant: FLEET, operate: true } : { tenant: owner };
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${await signService(settings, claims, Date.now())}`,
      'content-type': 'application/json',
    },
    body,
    redirect: 'manual',
    signal: AbortSignal.timeout(DELIVERY_TIMEOUT_MS),
  });
  const answered = acknowledgement.safeParse(await response.json());
  return response.ok && answered.success ? answered.data.note : undefined;
}

/** Returns the log's position in this epoch of the outbox, from a verified acknowledgement. */
async function readAck(
  note: string,
  { origin: base, key, years }: AuditLog,
  { zone, producer, epoch }: Record<'zone' | 'producer' | 'epoch', string>,
): Promise<number | undefined> {
  const origin = originOfAck(note);
  const year = origin === undefined ? undefined : yearOfName(origin);
  if (!origin?.startsWith(`${base}/${zone}/`) || year === undefined) return undefined;
  for (const text of keysIn(years ?? [], [key], year).filter(isEd25519Text)) {
    const publicKey = fromBase64(text);
    const ack = publicKey && (await openAck(note, await openVerifier(ackName(origin), publicKey)));
    if (ack) return ack.producer === producer && ack.epoch === epoch ? ack.upTo : undefined;
  }
  return undefined;
}
