import { createRequire } from 'node:module';
import path from 'node:path';

const load = createRequire(import.meta.url);
const { ensureBundle } = load('./bundled.cjs') as { ensureBundle(): string };

let known: string | undefined;

/** Returns the folder of the bundle; this process keeps the one that it saw first. */
export function bundleFolder(): string {
  known ??= ensureBundle();
  return known;
}

/** Returns the bundled file of an entry, by its TypeScript file relative to the repository. */
export const bundledEntry = (entry: string): string => path.join(bundleFolder(), entry.replace(/\.ts$/, '.js'));
