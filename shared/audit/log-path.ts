// Paths of the files of a log: tiles and checkpoint of C2SP tlog-tiles, and beside them the newest witnessed
// checkpoint, the policy and receipts.
import { readTilePath, type Tile } from './tile.ts';

export type LogPath =
  | { readonly kind: 'tile'; readonly tile: Tile }
  | { readonly kind: 'checkpoint' | 'witnessed' | 'policy' }
  | { readonly kind: 'receipt'; readonly index: number };

/** Parses a path; `undefined` when a log has no such file. */
export function readLogPath(path: string): LogPath | undefined {
  if (path === 'checkpoint' || path === 'witnessed' || path === 'policy') return { kind: path };
  const [, digits] = /^receipt\/(0|[1-9]\d*)$/.exec(path) ?? [];
  if (digits !== undefined) {
    const index = Number(digits);
    return Number.isSafeInteger(index) ? { kind: 'receipt', index } : undefined;
  }
  const tile = readTilePath(path);
  return tile && { kind: 'tile', tile };
}

/** Reports whether a path contains entries, which are of all tenants. */
export const holdsEntries = (path: LogPath | undefined): boolean =>
  path?.kind === 'tile' && path.tile.level === 'entries';
