import { readFile, stat } from 'node:fs/promises';
import { KiB } from '../../../../shared/bytes.ts';
import { ok } from '../../../../shared/result.ts';
import { type BuildResult, problem } from '../problem.ts';

/** Key or passphrase, also one in a file: a larger file was named by mistake. */
const MODEL_KEY_BYTES = 4 * KiB;

/** A file argument of these commands: `path:key`. */
export interface Named {
  readonly path: string;
  /** A key, or a reference to one; see `readKey`. */
  readonly key?: string;
}

/**
 * Splits at the first colon, except that of a Windows drive. A key may contain colons, as `env:NAME` does.
 */
export function splitNamed(text: string): Named {
  const from = /^[A-Za-z]:[\\/]/.test(text) ? 2 : 0;
  const at = text.indexOf(':', from);
  return at < 0 ? { path: text } : { path: text.slice(0, at), key: text.slice(at + 1) };
}

/**
 * Resolves a key or its reference: `env:NAME`, `file:PATH` (without one line end), otherwise the text itself.
 * Prefer a reference: every process of the machine can read command lines.
 */
export async function readKey(
  given: string,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<BuildResult<Uint8Array>> {
  const [, scheme, rest = ''] = /^(env|file|kv):(.*)$/s.exec(given) ?? [];
  if (scheme === 'kv') {
    return problem(
      'unsupported',
      'kv:// keys are not fetched here: mount the secret (Key Vault CSI driver) and write file:PATH, or write env:NAME',
    );
  }
  if (scheme === 'env') {
    const value = environment[rest];
    return value ? ok(new TextEncoder().encode(value)) : problem('keyless', `no key: ${rest} is not set`);
  }
  if (scheme === 'file') return readKeyFile(rest);
  return given === '' ? problem('keyless', 'no key stands behind the colon') : ok(new TextEncoder().encode(given));
}

async function readKeyFile(file: string): Promise<BuildResult<Uint8Array>> {
  try {
    if ((await stat(file)).size > MODEL_KEY_BYTES) {
      return problem('bound', `${file} is longer than a key may be`);
    }
    const text = (await readFile(file, 'utf8')).replace(/\r?\n$/, '');
    return text === '' ? problem('keyless', `no key: ${file} is empty`) : ok(new TextEncoder().encode(text));
  } catch {
    return problem('keyless', `no key: ${file} cannot be read`);
  }
}
