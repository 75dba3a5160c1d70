import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { importJWK, SignJWT } from 'jose';
import type { PartName } from '../../infra/local/part.ts';
import type { Pool } from '../../infra/local/pools.ts';
import { ROOT } from '../../infra/local/root.ts';
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

/** Parts and models of a test's stack; all by default. */
interface Having {
  readonly parts?: PartName[];
  readonly pools?: readonly Pool[];
  /** Folders of the model repository that the stack lacks: an agent that starts again loads all that it has. */
  readonly without?: readonly string[];
}

/** The 16-bit model and the voice, for tests of restarts that need neither. */
export const OTHER_MODELS = ['reference-en-fp16', 'asr_inference_fp16', 'voice-en'] as const;

/** Starts a stack. */
export async function run({ parts, pools, without = [] }: Having = {}): Promise<Running> {
  const state = mkdtempSync(path.join(os.tmpdir(), 'auricle-test-'));
  const models = without.length > 0 ? copyModels(without) : undefined;
  const stack = await startStack({
    port: 0,
    state,
    ...(parts && { parts }),
    ...(pools && { pools }),
    ...(models && { models }),
  });
  const end = async () => {
    await stack.stop();
    for (const folder of [state, models]) if (folder) rmSync(folder, { recursive: true, force: true });
  };
  return { ...shared({ stack, state }), stack, end };
}

function copyModels(without: readonly string[]): string {
  const copy = mkdtempSync(path.join(os.tmpdir(), 'auricle-models-'));
  cpSync(path.join(ROOT, 'infra/pool/models/repository'), copy, {
    recursive: true,
    filter: (from) => !without.includes(path.basename(from)),
  });
  return copy;
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
