import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type Refusal, refuse } from '../../../../shared/refusal.ts';
import { no, ok } from '../../../../shared/result.ts';
import { startSpan } from '../../../../shared/trace/span.ts';
import { detectorOf, type LeasedModel } from '../models/served-model.ts';
import { admit, plainRefusal } from '../request/admit.ts';
import type { AgentContext } from '../request/agent-context.ts';
import { bugFields } from '../telemetry/log.ts';
import type { StreamHost } from './host.ts';
import type { StreamMetrics } from './metrics.ts';
import { refuseUpgrade } from './refuse-upgrade.ts';

const PATH = '/v1/stream';

/** Admits the live streams of an agent, which come as upgrades of its HTTP server, and hands them to `host`. */
export function createStreamDoor(
  context: AgentContext,
  host: Pick<StreamHost, 'serve'>,
  metrics: Pick<StreamMetrics, 'ended'>,
) {
  function report({ reason, detail }: Refusal, request?: string) {
    metrics.ended(reason);
    const why = { reason, ...(detail !== undefined && { detail }) };
    context.log('stream-refused', { ...(request !== undefined && { request }), ...why });
  }

  /** Serves one stream from its first header to its last record. Never rejects. */
  return async (request: IncomingMessage, connection: Duplex, head: Buffer): Promise<void> => {
    // A connection without a listener for errors ends the process.
    connection.on('error', () => connection.destroy());
    if ((request.url ?? '').split('?')[0] !== PATH) {
      return refuseUpgrade(connection, 404, '{"reason":"route_unknown"}');
    }
    const { traceparent } = request.headers;
    const header = typeof traceparent === 'string' ? traceparent : undefined;
    const span = startSpan({ name: 'agent stream', kind: 'server', traceparent: header }, context.tracer);
    let id: string | undefined;
    const turnAway = (refusal: Refusal) => {
      span?.end({ 'auricle.request': id }, refusal.reason);
      report(refusal, id);
      const { status, body } = plainRefusal(refusal);
      refuseUpgrade(connection, status, body);
    };
    const entry = context.streams.enter();
    let leased: LeasedModel | undefined;
    let detecting: LeasedModel | undefined;
    try {
      const admitted = await admit(context, request.headers, {
        enter: () => (context.streams.full() || !context.engineReady() ? no(refuse('pool_busy')) : ok(undefined)),
        serves: ({ description }) => description.live === true,
      });
      if (!admitted.ok) return turnAway(admitted.refusal);
      id = admitted.value.ticket.jti;
      const { draining, signal: stopped } = entry;
      leased = await context.lease(admitted.value.model, stopped);
      if (!leased) return turnAway(refuse('pool_busy', undefined, 'the model is not loaded yet'));
      const { model } = leased;
      const served = context.detector();
      detecting = served && (await context.lease(served, stopped));
      const detector = detecting && detectorOf(detecting.model);
      const admittedStream = { ...admitted.value, model, detector, request, connection, head, draining, stopped };
      const outcome = await host.serve(admittedStream);
      span?.end({ 'auricle.request': id }, outcome && !outcome.ok ? outcome.refusal.reason : undefined);
      if (outcome?.ok) metrics.ended('ok');
      else if (outcome) report(outcome.refusal, id);
    } catch (error) {
      metrics.ended('internal');
      span?.end({ 'auricle.request': id }, 'internal');
      context.log('bug', { ...(id !== undefined && { request: id }), ...bugFields(error) });
      connection.destroy();
    } finally {
      leased?.release();
      detecting?.release();
      entry.leave();
    }
  };
}
