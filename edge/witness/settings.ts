// Settings of a witness: its identity, and the logs that it watches.
import { z } from 'zod';
import { cosigner } from '../../shared/audit/cosignature.ts';
import { openSigningKey, type Signer, type Verifier } from '../../shared/audit/note.ts';
import { openNoteKey, readNoteKey } from '../../shared/audit/note-key.ts';
import { fromBase64 } from '../../shared/base64.ts';
import { jsonText } from '../../shared/json-text.ts';
import type { Seen } from './seen.ts';

/**
 * Keys of one log that a witness trusts: it tries each on every checkpoint, and a log has one of each type
 * and earlier ones.
 */
const WITNESS_KEYS_MAX = 8;
/** Name of a log or witness, an address without scheme: every signature carries it. */
const WITNESS_NAME_CHARACTERS = 256;

export interface WitnessBindings {
  readonly SEEN: ObjectNamespace<Pick<Seen, 'advance' | 'publish' | 'newest'>>;
  /** Name of the witness's key, an address without scheme. */
  readonly WITNESS_NAME: string;
  /** 32 bytes in base64: its private Ed25519 key, which signs nothing else. */
  readonly WITNESS_KEY: string;
  /** JSON, `watchedLogs`. */
  readonly LOGS: string;
}

const watchedLogs = z.array(
  z.object({
    /** Name of the log and of its keys. */
    origin: z.string().min(1).max(WITNESS_NAME_CHARACTERS),
    /** The log has one instance a year, named with `/` and the year; the keys are the same. */
    yearly: z.boolean().default(false),
    keys: z.array(z.string()).min(1).max(WITNESS_KEYS_MAX),
  }),
);
export type WatchedLog = z.input<typeof watchedLogs>[number];

export interface WitnessSettings {
  /** Cosigner. */
  signer(seconds: () => number): Signer;
  /** Returns the keys of a log; `undefined` for an unconfigured one. */
  verifiersOf(origin: string): Promise<readonly Verifier[]> | undefined;
}

const settings = z.object({
  WITNESS_NAME: z.string().regex(new RegExp(`^[^\\s+]{1,${WITNESS_NAME_CHARACTERS}}$`, 'u')),
  WITNESS_KEY: z.base64().length(44),
  LOGS: jsonText(watchedLogs),
});

/** Throws for an invalid setting, with its name and never its value. */
export async function readWitnessSettings(given: WitnessBindings): Promise<WitnessSettings> {
  const parsed = settings.safeParse(given);
  const seed = parsed.success ? fromBase64(parsed.data.WITNESS_KEY) : undefined;
  if (!parsed.success || !seed) throw new Error('missing or unusable settings of the witness');
  const { WITNESS_NAME, LOGS } = parsed.data;
  const key = await openSigningKey(seed);
  const keysOf = (log: z.output<typeof watchedLogs>[number]) => {
    const keys = log.keys.map(readNoteKey);
    const fit = keys.every((one) => one !== undefined && one.name === log.origin && one.type !== 'cosignature');
    if (!fit) throw new Error(`LOGS: a key of ${log.origin} is none`);
    return keys.filter((one) => one !== undefined);
  };
  const logs = LOGS.map((log) => ({ ...log, keys: keysOf(log) }));
  return {
    signer: (seconds) =>
      cosigner(WITNESS_NAME, { publicKey: key.publicKey, sign: key.signer(WITNESS_NAME).sign }, seconds),
    verifiersOf(origin) {
      const log = logs.find((one) => (one.yearly ? isYearOf(one.origin, origin) : one.origin === origin));
      return log && Promise.all(log.keys.map((one) => openNoteKey({ ...one, name: origin })));
    },
  };
}

const isYearOf = (base: string, origin: string): boolean =>
  origin.startsWith(`${base}/`) && /^\d{4}$/.test(origin.slice(base.length + 1));
