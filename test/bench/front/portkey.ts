// Portkey's gateway, as npm ships it, on Node and on workerd. Installed when the benchmark first runs, never with the
// project; the version is fixed and the lock says what came with it.
import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import path from 'node:path';
import { build, type Plugin } from 'esbuild';

const GATEWAY = 'node_modules/@portkey-ai/gateway/build/start-server.js';

export function installPortkey(folder: string): void {
  if (existsSync(path.join(folder, GATEWAY))) return;
  mkdirSync(folder, { recursive: true });
  const own = path.join(import.meta.dirname, 'portkey');
  for (const file of ['package.json', 'package-lock.json']) copyFileSync(path.join(own, file), path.join(folder, file));
  execFileSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: folder });
}

/** Plans Portkey on Node. It listens on every address; the preload restricts it to loopback. */
export function planPortkeyOnNode(folder: string, port: number): string[] {
  const preload = path.join(folder, 'loopback.cjs');
  writeFileSync(
    preload,
    `const { Server } = require('node:net');
const listen = Server.prototype.listen;
Server.prototype.listen = function (port, ...rest) {
  const more = rest.filter((one) => typeof one === 'function');
  return listen.call(this, { port: typeof port === 'object' ? port.port : port, host: '127.0.0.1' }, ...more);
};
`,
  );
  const options = [`--port=${port}`, '--headless'];
  return [process.execPath, '--require', preload, path.join(folder, GATEWAY), ...options];
}

/**
 * The same file on workerd: npm has the build for Node only, so its HTTP server is replaced by one that hands the
 * application over, and its greeting on the terminal, for which workerd has no terminal, is cut off.
 */
export async function writePortkeyWorker(folder: string): Promise<string> {
  const worker = path.join(folder, 'worker');
  mkdirSync(worker, { recursive: true });
  const built = readFileSync(path.join(folder, GATEWAY), 'utf8');
  const greeting = built.indexOf(',console.clear(),');
  if (greeting < 0) throw new Error('the build of Portkey is not the one this was written for');
  const application = built
    .slice(0, greeting)
    .replace('"@hono/node-server"', '"./serve.js"')
    .replace('"@hono/node-ws"', '"./socket.js"');
  const write = (name: string, text: string) => writeFileSync(path.join(worker, name), text);
  write('application.js', `${application};\n`);
  write('serve.js', 'export const held = {};\nexport const serve = (options) => { held.app = options; };\n');
  write(
    'socket.js',
    'export const createNodeWebSocket = () => ({ injectWebSocket() {}, upgradeWebSocket: () => () => {} });\n',
  );
  write('arguments.js', "process.argv.push('', '', '--headless');\n");
  write(
    'entry.js',
    `import './arguments.js';
import './application.js';
import { held } from './serve.js'; export default { fetch: (request, env, context) => held.app.fetch(request, env, context) };
`,
  );
  const bundled = path.join(worker, 'bundled.js');
  await build({
    entryPoints: [path.join(worker, 'entry.js')],
    outfile: bundled,
    bundle: true,
    format: 'esm',
    target: 'es2024',
    conditions: ['workerd', 'worker', 'browser'],
    external: ['node:*'],
    plugins: [ownNodeModules],
    logLevel: 'error',
  });
  return bundled;
}

/** Older packages require Node's modules without their prefix; workerd has them under the prefix only. */
const ownNodeModules: Plugin = {
  name: 'own-node-modules',
  setup(context) {
    const names = new RegExp(`^(${builtinModules.filter((name) => /^[a-z]/.test(name)).join('|')})$`);
    context.onResolve({ filter: names }, ({ path: name }) => ({ path: name, namespace: 'own-node-modules' }));
    context.onLoad({ filter: /./, namespace: 'own-node-modules' }, ({ path: name }) => ({
      contents: `import * as all from 'node:${name}'; module.exports = all.default ?? all;`,
    }));
  },
};
