import type { Import } from './imports.ts';

/** Allowed imports of a folder. The first row whose folder contains the file decides. */
type Row = {
  folder: string;
  /** Folders of this repository, besides its own. */
  folders: string[];
  /** Packages; a name ending in `/` or `:` allows everything below it. `*` allows any. */
  packages: string[];
};

const rows: Row[] = [
  // Pure: its libraries compute on their arguments and touch nothing else.
  { folder: 'shared/', folders: [], packages: ['zod', 'jose', 'hpke', '@noble/', 'hyparquet-writer'] },
  // `node:crypto` is implemented natively by workerd, and WebCrypto cannot hash synchronously.
  { folder: 'edge/', folders: ['shared/'], packages: ['hono', 'jose', 'zod', 'hpke', 'cloudflare:', 'node:crypto'] },
  {
    folder: 'functions/',
    folders: ['shared/'],
    packages: ['@azure/', '@aws-sdk/', 'zod', 'jose', 'hpke', 'node:'],
  },
  // The agent and the engine meet over HTTP only: the engine is one of several. Both read Triton's repository
  // format.
  {
    folder: 'infra/pool/agent/',
    folders: ['shared/', 'infra/pool/models/'],
    packages: ['*'],
  },
  { folder: 'infra/pool/engine/', folders: ['shared/', 'infra/pool/models/'], packages: ['*'] },
  // Models are built and measured with the pieces of the agent that will serve them.
  {
    folder: 'infra/pool/model-build/',
    folders: ['shared/', 'infra/pool/models/', 'infra/pool/agent/'],
    packages: ['*'],
  },
  {
    folder: 'infra/pool/training/',
    folders: ['shared/', 'infra/pool/models/', 'infra/pool/agent/'],
    packages: ['*'],
  },
  { folder: 'infra/pool/', folders: ['shared/'], packages: ['*'] },
  // The client for apps knows no more than any app; the command line is one. It also is where models are built, on the
  // operator's machine.
  {
    folder: 'infra/cli/',
    folders: ['shared/', 'edge/client/', 'infra/identity/', 'infra/pool/models/', 'infra/pool/model-build/'],
    packages: ['zod', 'jose', 'ws', 'node:'],
  },
  { folder: 'infra/local/', folders: ['shared/', 'edge/', 'functions/', 'infra/'], packages: ['*'] },
  { folder: 'infra/', folders: ['shared/'], packages: ['*'] },
  { folder: 'test/', folders: [''], packages: ['*'] },
];

export function findWrongDirections(imports: Import[]): string[] {
  return imports.filter((one) => !isAllowed(one)).map(({ from, to }) => `${from} must not import ${to}`);
}

function isAllowed({ from, to }: Import): boolean {
  const row = rows.find(({ folder }) => from.startsWith(folder));
  if (!row) return false;
  if (to.endsWith('.ts') || to.startsWith('.')) return isFolderAllowed(row, to);
  // A relative import of something else than TypeScript (a page, a WebAssembly module) was resolved to a path, too.
  const ours = /^(shared|edge|functions|infra|test)\//.test(to);
  return ours ? isFolderAllowed(row, to) : row.packages.some((name) => isPackage(name, to));
}

function isFolderAllowed(row: Row, to: string): boolean {
  return to.startsWith(row.folder) || row.folders.some((folder) => to.startsWith(folder));
}

function isPackage(allowed: string, written: string): boolean {
  if (allowed === '*' || written === allowed) return true;
  return /[/:]$/.test(allowed) ? written.startsWith(allowed) : written.startsWith(`${allowed}/`);
}
