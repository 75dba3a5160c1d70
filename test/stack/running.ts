import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { importJWK, SignJWT } from 'jose';
import type { PartName } from '../../infra/local/part.ts';
import { type Pool, pools as usualPools } from '../../infra/local/pools.ts';
import { type Stack, startStack } from '../../infra/local/stack.ts';

/** A running stack for tests that do not change it. */
export interface Shared {
  readonly stack: Omit<Stack, 'pid' | 'isReady' | 'kill' | 'stop'>;
  readonly state: string;
  /** A token of the stack's own issuer. Claims given here replace those of an ordinary tenant. */
  mint(claims?: Record<string, unknown>, seconds?: number): Promise<string>;
  /** All log lines of the parts so far. */
  logs(): string;
}

/** A whole stack in a temporary folder, for one test file. */
export interface Running extends Shared {
  readonly stack: Stack;
  end(): Promise<void>;
}

/** Parts and pools of a test's stack; those of `npm start` by default. */
interface Having {
  readonly parts?: PartName[];
  readonly pools?: readonly Pool[];
  /** Settings of its agents. */
  readonly agentSettings?: Readonly<Record<string, string>>;
  /** Variables that name a collector of traces. */
  readonly collector?: Readonly<Record<string, string>>;
}

/** Pools of one model, for tests of restarts: an agent that starts again loads every model of its pool. */
export const ENGLISH_POOLS: readonly Pool[] = usualPools.map((pool) => ({ ...pool, models: ['reference-en'] }));

/** Starts a stack. */
export async function run({ parts, pools, agentSettings, collector }: Having = {}): Promise<Running> {
  const state = mkdtempSync(path.join(os.tmpdir(), 'auricle-test-'));
  const stack = await startStack({
    port: 0,
    state,
    ...(parts && { parts }),
    ...(pools && { pools }),
    ...(agentSettings && { agentSettings }),
    ...(collector && { collector }),
  });
  const end = async () => {
    await stack.stop();
    rmSync(state, { recursive: true, force: true });
  };
  return { ...shared({ stack, state }), stack, end };
}

/** Builds the view of a stack that another process can use. */
export const shared = ({ stack, state }: Pick<Shared, 'stack' | 'state'>): Shared => ({
  stack,
  state,
  mint: (claims, seconds) => mint(state, claims, seconds),
  logs: () => readLogs(path.join(state, 'logs')),
});

async function mint(state: string, claims: Record<string, unknown> = {}, seconds = 600): Promise<string> {
  const key = JSON.parse(readFileSync(path.join(state, 'identity', 'issuer.private.jwk.json'), 'utf8'));
  const now = Math.floor(Date.now() / 1000);
  return new SignJWT({ tenant: 'acme', scope: 'transcribe models', zones: ['eu', 'us'], ...claims })
    .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid: key.kid })
    .setIssuer('https://auricle.local/issuer')
    .setAudience((claims.aud as string) ?? 'auricle')
    .setSubject((claims.sub as string) ?? 'someone')
    .setIssuedAt(now - 3600)
    .setExpirationTime(now + seconds)
    .sign(await importJWK(key, 'ES256'));
}

function readLogs(folder: string): string {
  if (!existsSync(folder)) return '';
  return readdirSync(folder)
    .map((file) => readFileSync(path.join(folder, file), 'utf8'))
    .join('\n');
}
