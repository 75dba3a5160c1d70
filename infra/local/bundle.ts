// Makes the one file that workerd runs out of edge/worker.ts, as `wrangler deploy` would.
import { copyFileSync, mkdirSync } from 'node:fs';
import path from 'node:path';
import { build, type Plugin } from 'esbuild';

export type Bundle = { folder: string; script: string; wasm: string[] };

export async function bundleWorker(entry: string, folder: string): Promise<Bundle> {
  mkdirSync(folder, { recursive: true });
  const wasm: string[] = [];
  const script = path.join(folder, 'worker.js');
  await build({
    entryPoints: [entry],
    outfile: script,
    bundle: true,
    format: 'esm',
    target: 'es2024',
    sourcemap: 'linked',
    conditions: ['workerd', 'worker', 'browser'],
    external: ['cloudflare:*', 'node:*'],
    // Types that wrangler reads as text by its default rules, and the static files of the console.
    loader: { '.html': 'text', '.txt': 'text', '.css': 'text', '.svg': 'text' },
    plugins: [keepWasm(folder, wasm)],
    logLevel: 'warning',
  });
  return { folder, script, wasm };
}

/** workerd compiles WebAssembly only from modules that are named when it starts, so they stay files beside the script. */
function keepWasm(folder: string, found: string[]): Plugin {
  return {
    name: 'keep-wasm',
    setup(context) {
      context.onResolve({ filter: /\.wasm$/ }, (request) => {
        const source = path.resolve(request.resolveDir, request.path);
        const name = path.basename(source);
        copyFileSync(source, path.join(folder, name));
        if (!found.includes(name)) found.push(name);
        return { path: `./${name}`, external: true };
      });
    },
  };
}
