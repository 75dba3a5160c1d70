import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Server } from 'node:https';
import { createSecureContext } from 'node:tls';
import type { Settings } from '../settings/settings.ts';
import type { Log } from '../telemetry/log.ts';

/**
 * Interval at which the files are compared with the pair in use. Mounted secrets are replaced by a swap of links within
 * about a minute, weeks before the old certificate expires; two small reads cost microseconds.
 */
export const TLS_POLL_MS = 10_000;

export type TlsFiles = NonNullable<Settings['tls']>;

/** Certificate chain and private key in PEM. */
export interface TlsPair {
  readonly cert: Buffer;
  readonly key: Buffer;
}

/** Reads a pair and checks it. Returns the problem, which quotes nothing of the files. `now` in ms since 1970. */
export function readTlsPair({ certificateFile, keyFile }: TlsFiles, now: number): TlsPair | string {
  const cert = readBytes(certificateFile);
  const key = readBytes(keyFile);
  if (typeof cert === 'string') return `certificate: ${cert}`;
  if (typeof key === 'string') return `key: ${key}`;
  let leaf: X509Certificate;
  try {
    leaf = new X509Certificate(cert);
  } catch {
    return 'certificate: is no certificate in PEM';
  }
  try {
    if (!leaf.checkPrivateKey(createPrivateKey(key))) return 'key: belongs to another certificate';
    createSecureContext({ cert, key });
  } catch {
    return 'key: is no private key in PEM without a passphrase, or the chain is broken';
  }
  if (now >= Date.parse(leaf.validTo)) return `certificate: has expired on ${leaf.validTo}`;
  if (now < Date.parse(leaf.validFrom)) return `certificate: is not valid before ${leaf.validFrom}`;
  return { cert, key };
}

function readBytes(file: string): Buffer | string {
  try {
    return readFileSync(file);
  } catch (error) {
    return `cannot be read (${(error as NodeJS.ErrnoException).code})`;
  }
}

export interface TlsRotation {
  /** Compares the files with the pair in use, and gives new connections a new pair that is whole. */
  poll(): void;
  stop(): void;
}

/** Rotates the pair of a listener with its files. Open connections keep theirs; a broken new pair is logged once. */
export function rotateTls(
  server: Pick<Server, 'setSecureContext'>,
  files: TlsFiles,
  { used, now, log }: { readonly used: TlsPair; readonly now: () => number; readonly log: Log },
): TlsRotation {
  let current = used;
  let logged: string | undefined;
  function poll() {
    const read = readTlsPair(files, now());
    if (typeof read === 'string') {
      if (read !== logged) log('tls-refused', { detail: read });
      logged = read;
      return;
    }
    logged = undefined;
    if (read.cert.equals(current.cert) && read.key.equals(current.key)) return;
    server.setSecureContext({ ...read, minVersion: 'TLSv1.3' });
    current = read;
    log('tls-loaded');
  }
  const timer = setInterval(poll, TLS_POLL_MS);
  timer.unref();
  return { poll, stop: () => clearInterval(timer) };
}
