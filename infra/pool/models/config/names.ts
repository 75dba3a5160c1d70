// Rules for file names inside archives.

/** Longest path on any disk, characters. */
const LONGEST = 1024;

/**
 * Characters that are invisible, change their neighbours' appearance, are half a character, or have a meaning
 * on some disks.
 */
const odd = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}:\\\u{fffd}]/u;

/** Normalises `./a/b` to `a/b`; undefined for a path that leads elsewhere, or is none. */
export function plainPath(written: string): string | undefined {
  if (written.startsWith('/') || written.length > LONGEST || odd.test(written)) return undefined;
  const parts = written.split('/').filter((part) => part !== '' && part !== '.');
  return parts.length === 0 || parts.includes('..') ? undefined : parts.join('/');
}

/** Maps names that some disk confuses to one. */
const folded = (name: string): string => name.normalize('NFKC').toLowerCase();

/** Set of names that can coexist on every disk. `add` returns the problem of one that cannot. */
export function createNames() {
  const seen = new Map<string, 'file' | 'folder'>();
  return {
    add(name: string, kind: 'file' | 'folder'): string | undefined {
      const key = folded(name);
      for (let end = key.indexOf('/'); end >= 0; end = key.indexOf('/', end + 1)) {
        const folder = key.slice(0, end);
        if (seen.get(folder) === 'file') return `${name} lies in a file`;
        seen.set(folder, 'folder');
      }
      const before = seen.get(key);
      if (before !== undefined && (before === 'file' || kind === 'file')) return `${name} is there twice`;
      seen.set(key, kind);
      return undefined;
    },
  };
}
