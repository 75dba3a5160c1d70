// Roster entry of a double, attested and by signed heartbeats like any agent's.
import { CompactSign, exportJWK, generateKeyPair } from 'jose';
import { createAttest } from '../../infra/pool/agent/identity/attest.ts';
import { RosterHeartbeat } from '../../infra/pool/agent/identity/heartbeat.ts';
import type { AgentDescription } from '../../shared/pool/description.ts';
import { MODEL, REVISION } from './front/words.ts';

export const AGENT = 'bench-0';

export interface Told {
  readonly edgeUrl: string;
  readonly poolToken: string;
  readonly attestationKeyFile: string;
  readonly attestationIssuer: string;
  readonly pool: string;
  readonly zone: string;
}

/** Parameters of a double. */
export interface Joining {
  readonly sealKey: JsonWebKey;
  readonly port: number;
  /** The double accepts live streams. */
  readonly live?: boolean;
  /** Called with the attestation token before the roster gets it. */
  readonly onAttested: (token: string) => void;
}

export async function joinRoster(told: Told, { sealKey, port, live, onAttested }: Joining): Promise<void> {
  const signKey = await generateKeyPair('ES256');
  const { kty, crv, x, y } = await exportJWK(signKey.publicKey);
  const { attestationKeyFile: keyFile, attestationIssuer: issuer } = told;
  const attest = createAttest({ kind: 'development', keyFile, issuer });
  const keys = [sealKey, { kty, crv, x, y, use: 'sig' } as JsonWebKey];
  const attested = await attest({ keys, suites: [5], agent: AGENT }, Date.now());
  onAttested(attested.token);
  const description: AgentDescription = {
    agent: AGENT,
    pool: told.pool,
    zone: told.zone,
    region: 'bench',
    platform: 'other',
    endpoint: `http://127.0.0.1:${port}`,
    accelerator: 'cpu',
    slots: 1_024,
    suites: [5],
    models: [
      {
        name: MODEL,
        task: 'transcribe',
        languages: ['en'],
        revision: REVISION,
        precision: 'fp32',
        stage: 'full',
        loaded: 1_700_000_000,
        ...(live !== undefined && { live }),
      },
    ],
  };
  new RosterHeartbeat({
    edgeUrl: told.edgeUrl,
    token: () => told.poolToken,
    keys: {
      boot: crypto.randomUUID(),
      current: () => attested,
      renew: async () => attested,
      sign: (payload) =>
        new CompactSign(new TextEncoder().encode(JSON.stringify(payload)))
          .setProtectedHeader({ alg: 'ES256', kid: AGENT })
          .sign(signKey.privateKey),
      setup: () => Promise.reject(new Error('the double sets up by itself')),
      unwrap: async () => undefined,
    },
    describe: () => description,
    load: () => ({
      busy: 0,
      queued: { realtime: 0, interactive: 0, default: 0, batch: 0 },
      serviceMs: 1,
      draining: false,
      engineReady: true,
    }),
    outbox: { batch: () => [], acknowledge: () => {} } as never,
    onDrain: () => {},
    onStale: () => {},
    log: () => {},
  }).start();
}
