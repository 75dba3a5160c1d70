// What of a log is read under which name, by whoever serves it: the tiles and the checkpoint of C2SP tlog-tiles, and beside
// them what we add: the newest checkpoint that witnesses have signed, whom to believe, and receipts.
import { readTilePath, type Tile } from './tile.ts';

export type LogPath =
  | { readonly kind: 'tile'; readonly tile: Tile }
  | { readonly kind: 'checkpoint' | 'witnessed' | 'policy' }
  | { readonly kind: 'receipt'; readonly index: number };

/** `undefined` when nothing of a log has that name. */
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

/** Entries are everybody's; all else tells nothing but that nothing was changed. */
export const holdsEntries = (path: LogPath | undefined): boolean =>
  path?.kind === 'tile' && path.tile.level === 'entries';
