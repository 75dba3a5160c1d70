import type { Log } from '../telemetry/log.ts';
import { keepRenewed } from './keep-renewed.ts';
import { type Keys, openSuites, sha256 } from './keys.ts';
import type { Outbox } from './record.ts';

interface RenewalOptions {
  readonly keys: Keys;
  readonly outbox: Outbox;
  readonly log: Log;
  readonly agent: string;
  readonly now: () => number;
  readonly onRenewed: () => void;
}

/** Keeps the keys attested: renews the attestation at half its life, or on request. */
export const createRenewal = ({ keys, outbox, log, agent, now, onRenewed }: RenewalOptions) =>
  keepRenewed({
    async renew() {
      const { token, expires } = await keys.renew(now());
      for (const suite of openSuites) {
        outbox.record({ type: 'keys', agent, action: 'attested', suite, attestation: sha256(token) });
      }
      log('attested');
      return expires * 1_000;
    },
    now,
    onRenewed,
    onFailed: (error) => log('attest-failed', { reason: error instanceof Error ? error.name : 'unknown' }),
  });
