// Deliveries of the edge's outboxes.
import {
  type Ack,
  ackName,
  type Delivery,
  delivery,
  originOfLog,
  signAck,
  zoneOfProducer,
} from '../../../shared/audit/delivery.ts';
import { MiB } from '../../../shared/bytes.ts';
import { jsonOf } from '../../../shared/json-text.ts';
import { refuse } from '../../../shared/refusal.ts';
import type { EdgeCaller } from '../../caller/edge-caller.ts';
import type { EdgeHandler } from '../../caller/from-edge.ts';
import { answer, answerNo } from '../../http/answer.ts';
import { readText } from '../../http/read-text.ts';
import { failedIn, type LogContext } from '../context/log-context.ts';
import { verified } from '../context/verified.ts';
import { newestState, upToOf } from '../log/acknowledge.ts';
import { yearOf } from '../log/log-names.ts';
import { nameOfReceived, receive } from './intake.ts';

/** Body of one delivery: DELIVERY_CHARACTERS of up to three bytes each, and the JSON around them. */
const DELIVERY_BYTES = 4 * MiB;

const invalid = (rule: string) => answerNo(refuse('field_invalid', { field: 'body', rule }));

/**
 * POST /api/audit/{zone}/events: takes a delivery of an outbox, and says how far the log has it. `onReceived` is called
 * with each delivery that is stored; its failure is logged, and the log goes on.
 */
export const onEvents = (
  context: LogContext | undefined,
  onReceived: (zone: string, delivery: Delivery) => Promise<void> = async () => {},
): EdgeHandler =>
  verified(context, async (request, caller, { store, zones, base, hide, signer, now, log }) => {
    const { zone = '' } = request.params;
    if (!zones.includes(zone)) return answerNo(refuse('zone_unserved', { zone }));
    const text = await readText(request, DELIVERY_BYTES);
    if (text === undefined) return invalid('it is too long');
    const parsed = delivery.safeParse(jsonOf(text));
    if (!parsed.success) return invalid('it is not as agreed');
    const { producer, epoch, rows } = parsed.data;
    if (zoneOfProducer(producer) !== zone || !isOf(producer, caller)) return invalid('it is of another outbox');
    if (rows.length > 0) {
      const received = await receive(parsed.data, now(), hide(zone));
      if (!received) return invalid('its rows are not in their order');
      await store.create('intake', nameOfReceived(zone, received), new TextEncoder().encode(JSON.stringify(received)));
      await onReceived(zone, parsed.data).catch(failedIn(log, zone));
    }
    const state = await newestState(store, zone);
    const origin = state?.origin ?? originOfLog(base, zone, yearOf(now()));
    const ack: Ack = { origin, producer, epoch, upTo: upToOf(state, producer, epoch) };
    const key = signer(ackName(origin));
    if (!key) throw new Error(`no key here signs for ${origin}: AUDIT_KEY_YEARS`);
    return answer(200, { note: await signAck(ack, key) });
  });

/** Reports whether the outbox is the caller's: gates belong to their tenants, rosters to the fleet. */
function isOf(producer: string, { tenant, operate }: EdgeCaller): boolean {
  const [kind, owner] = producer.split('/');
  return kind === 'roster' ? operate : owner === tenant;
}
