import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { refuse } from '../../../../shared/refusal.ts';
import { no, type Result } from '../../../../shared/result.ts';
import { createOpener, createSealer } from '../../../../shared/seal/records.ts';
import type { Detector } from '../asr/detect-language.ts';
import { nodeAead } from '../identity/aead.ts';
import type { ServedModel } from '../models/served-model.ts';
import type { Ticket } from '../request/ticket.ts';
import { bugFields } from '../telemetry/log.ts';
import { refuseUpgrade } from './refuse-upgrade.ts';
import { type StreamContext, serveStream } from './stream.ts';
import { createSocketServer } from './web-socket.ts';

/** A stream that was admitted and has not been upgraded. */
export interface AdmittedStream {
  readonly request: Pick<IncomingMessage, 'method' | 'headers'>;
  readonly connection: Duplex;
  /** Bytes behind the head of the request. */
  readonly head: Buffer;
  readonly ticket: Ticket;
  readonly model: ServedModel;
  /** Detects languages; absent where the agent serves no such model. */
  readonly detector?: Detector | undefined;
  readonly requestKey: Uint8Array;
  readonly answerKey: Uint8Array;
  /** Aborts when the agent begins to stop. */
  readonly draining: AbortSignal;
  /** Aborts when the agent cannot wait any longer. */
  readonly stopped: AbortSignal;
}

/** Outcome of a stream; `undefined` when its upgrade was refused. */
export type StreamOutcome = Result<undefined> | undefined;

/** Carries live streams, in this process or in workers. */
export interface StreamHost {
  /** Serves one stream to its last record. Never rejects. */
  serve(stream: AdmittedStream): Promise<StreamOutcome>;
  /** Ends all sequences and sockets, after so many milliseconds by force. */
  close(milliseconds: number): Promise<void>;
}

/** Creates a host that carries its streams on this thread. */
export function createStreamHost(context: StreamContext): StreamHost {
  const sockets = createSocketServer((connection) => refuseUpgrade(connection, 400, '{"reason":"upgrade_missing"}'));
  return {
    async serve({ request, connection, head, ticket, model, detector, requestKey, answerKey, draining, stopped }) {
      try {
        const sealer = await createSealer(answerKey, ticket.suite, nodeAead);
        const opener = await createOpener(requestKey, ticket.suite, nodeAead);
        const socket = sockets.accept(request, connection, head);
        return (
          socket && (await serveStream({ context, ticket, model, detector, sealer, opener, socket, draining, stopped }))
        );
      } catch (error) {
        context.log('bug', bugFields(error));
        connection.destroy();
        return no(refuse('internal'));
      }
    },
    async close(milliseconds) {
      await Promise.all([context.live.ends.settle(milliseconds), sockets.close(milliseconds)]);
    },
  };
}
