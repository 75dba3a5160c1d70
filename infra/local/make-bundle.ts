// Makes the folder of bundled.cjs: every process of the stack and the command line, the Workers, and the
// verifier of exports.
//
//   node infra/local/node.cjs infra/local/make-bundle.ts FOLDER
import {
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { pathToFileURL } from 'node:url';
import { build, type Plugin } from 'esbuild';
import { writeVerifier } from '../verify/build.ts';
import { bundleWorker } from './bundle.ts';
import { ROOT } from './root.ts';

/** Files that a process, a thread, `--import` or the functions host starts with. */
const ENTRIES = [
  'infra/cli/main.ts',
  'infra/local/main.ts',
  'infra/local/leash.ts',
  ...globSync('infra/local/part/{blob,edge,functions,install-triton,release,sqs,triton}.ts', { cwd: ROOT }),
  'infra/pool/engine/main.ts',
  'infra/pool/engine/run/instance-thread.ts',
  'infra/pool/agent/main.ts',
  'infra/pool/agent/stream/worker.ts',
  'functions/triggers.ts',
];

/** Packages with native code, files of their own or one instance per process. */
const EXTERNAL = [
  '@azure/functions',
  '@azure/functions-extensions-base',
  '@echogarden/fvad-wasm',
  'azurite',
  'esbuild',
  'fauxqs',
  'miniflare',
  'onnxruntime-node',
  'opusscript',
];
/** CommonJS packages in an ES module load built-in modules by `require`. */
const BANNER =
  "import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(import.meta.url);";
/** Bundles of earlier source states that stay: a running stack restarts its parts from its own. */
const KEPT = 5;

async function bundleProcesses(scratch: string, folder: string): Promise<void> {
  await build({
    absWorkingDir: ROOT,
    entryPoints: ENTRIES,
    outbase: ROOT,
    outdir: scratch,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node22',
    sourcemap: 'linked',
    sourcesContent: false,
    banner: { js: BANNER },
    external: EXTERNAL,
    plugins: [keepPlaces(folder)],
    logLevel: 'warning',
  });
}

/**
 * Keeps `import.meta` of a source file what it is unbundled, so that files beside it are found. Only
 * `new URL('./entry.ts', import.meta.url)` becomes the bundled entry in `folder`.
 */
function keepPlaces(folder: string): Plugin {
  const files = globSync('{shared,edge,functions,infra}/**/*.ts', { cwd: ROOT }).map((name) => path.join(ROOT, name));
  const placed = new Map(
    files
      .map((file) => [file, readFileSync(file, 'utf8')] as const)
      .filter(([, text]) => text.includes('import.meta.')),
  );
  const names = [...new Set([...placed.keys()].map((file) => path.basename(file, '.ts')))];
  return {
    name: 'keep-places',
    setup(context) {
      context.onLoad({ filter: new RegExp(`[\\\\/](${names.join('|')})\\.ts$`) }, ({ path: file }) => {
        const text = placed.get(file);
        if (text === undefined) return undefined;
        const bundled = (_: string, entry: string) => {
          const source = path.relative(ROOT, path.resolve(path.dirname(file), `${entry}.js`));
          return `new URL(${JSON.stringify(pathToFileURL(path.join(folder, source)).href)})`;
        };
        const contents = text
          .replace(/new URL\('(\.[^']+)\.ts', import\.meta\.url\)/g, bundled)
          .replaceAll('import.meta.url', JSON.stringify(pathToFileURL(file).href))
          .replaceAll('import.meta.dirname', JSON.stringify(path.dirname(file)));
        return { contents, loader: 'ts' };
      });
    },
  };
}

/** Removes all but the newest bundles beside the given one. */
function dropOld(folder: string): void {
  const all = readdirSync(path.dirname(folder)).map((name) => path.join(path.dirname(folder), name));
  const byAge = all.map((one) => ({ one, at: statSync(one).mtimeMs })).sort((a, b) => b.at - a.at);
  for (const { one } of byAge.slice(KEPT)) rmSync(one, { recursive: true, force: true });
}

async function makeBundle(folder: string): Promise<void> {
  const scratch = `${folder}.${process.pid}`;
  mkdirSync(scratch, { recursive: true });
  try {
    await Promise.all([
      bundleProcesses(scratch, folder),
      bundleWorker('edge/worker.ts', path.join(scratch, 'workers/edge')),
      bundleWorker('edge/witness/worker.ts', path.join(scratch, 'workers/edge/witness')),
      writeVerifier(path.join(scratch, 'verifier')),
    ]);
    // Without it Node would parse each file twice to find out that it is a module.
    writeFileSync(path.join(scratch, 'package.json'), '{"type":"module"}\n');
    // Another process may have made it meanwhile.
    if (!existsSync(folder)) renameSync(scratch, folder);
    dropOld(folder);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

await makeBundle(path.resolve(process.argv[2] ?? ''));
