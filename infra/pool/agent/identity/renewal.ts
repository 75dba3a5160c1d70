import type { Log } from '../telemetry/log.ts';
import { reconnectPause } from './heartbeat.ts';
import { type Keys, openSuites, sha256 } from './keys.ts';
import type { Outbox } from './record.ts';

/** Share of an attestation's life after which the next one is fetched. */
const RENEW_AT = 0.5;

interface RenewalOptions {
  readonly keys: Keys;
  readonly outbox: Outbox;
  readonly log: Log;
  readonly agent: string;
  readonly now: () => number;
  readonly onRenewed: () => void;
}

/** Keeps the keys attested: renews the attestation at half its life, or on request. */
export function createRenewal({ keys, outbox, log, agent, now, onRenewed }: RenewalOptions) {
  let timer: NodeJS.Timeout | undefined;
  let failures = 0;
  let stopped = false;

  function schedule(act: () => void, milliseconds: number) {
    clearTimeout(timer);
    if (!stopped) timer = setTimeout(act, milliseconds);
  }

  async function renew(): Promise<void> {
    try {
      const { token, expires } = await keys.renew(now());
      failures = 0;
      for (const suite of openSuites) {
        outbox.record({ type: 'keys', agent, action: 'attested', suite, attestation: sha256(token) });
      }
      log('attested');
      schedule(again, Math.max(1_000, (expires * 1_000 - now()) * RENEW_AT));
    } catch (error) {
      log('attest-failed', { reason: error instanceof Error ? error.name : 'unknown' });
      await new Promise<void>((resolve) => schedule(resolve, reconnectPause(failures++, Math.random())));
      await renew();
    }
  }

  const again = () => void renew().then(onRenewed);
  return {
    first: renew,
    /** Renews the attestation after a pause, in place of the scheduled renewal. */
    renewAfter: (milliseconds: number) => schedule(again, milliseconds),
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
