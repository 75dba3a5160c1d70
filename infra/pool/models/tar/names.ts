// What files inside of an archive may be called.

/** Over this nothing is a path on a disk. */
const LONGEST = 1024;

/** What is not seen, changes what is seen beside it, or is half a letter; and what some disks give a meaning. */
const odd = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}:\\\u{fffd}]/u;

/** `./a/b` is `a/b`; undefined when it leads elsewhere, or is no name at all. */
export function plainPath(written: string): string | undefined {
  if (written.startsWith('/') || written.length > LONGEST || odd.test(written)) return undefined;
  const parts = written.split('/').filter((part) => part !== '' && part !== '.');
  return parts.length === 0 || parts.includes('..') ? undefined : parts.join('/');
}

/** The same for names that some disk would take for one. */
const folded = (name: string): string => name.normalize('NFKC').toLowerCase();

/** Names that can lie side by side on every disk. `add` gives what is wrong with one that cannot. */
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
