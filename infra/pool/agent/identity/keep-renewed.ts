import { reconnectPause } from './heartbeat.ts';

/** Share of the life of an attestation or token after which the next one is fetched. */
const RENEW_AT = 0.5;
/** Shortest pause between two renewals, for an issuer whose life is almost nothing. */
const RENEW_PAUSE_MS = 1_000;

interface RenewedOptions {
  /** Fetches the next one and returns its end, ms since 1970. Rejects to be called again after a pause. */
  readonly renew: () => Promise<number>;
  readonly now: () => number;
  readonly onRenewed: () => void;
  readonly onFailed: (error: unknown) => void;
}

/** Calls `renew` at half the life of its result, or on request; after a failure with back-off until it succeeds. */
export function keepRenewed({ renew, now, onRenewed, onFailed }: RenewedOptions) {
  let timer: NodeJS.Timeout | undefined;
  let failures = 0;
  let stopped = false;

  function schedule(act: () => void, milliseconds: number) {
    clearTimeout(timer);
    if (!stopped) timer = setTimeout(act, milliseconds);
  }

  async function first(): Promise<void> {
    try {
      const expires = await renew();
      failures = 0;
      schedule(again, Math.max(RENEW_PAUSE_MS, (expires - now()) * RENEW_AT));
    } catch (error) {
      onFailed(error);
      await new Promise<void>((resolve) => schedule(resolve, reconnectPause(failures++, Math.random())));
      await first();
    }
  }

  const again = () => void first().then(onRenewed);
  return {
    /** Resolves with the first success. */
    first,
    /** Renews after a pause, in place of the scheduled renewal. */
    renewAfter: (milliseconds: number) => schedule(again, milliseconds),
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
