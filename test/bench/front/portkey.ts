// Portkey's gateway, as npm ships it for Node. The first run of the benchmark installs it, with a fixed version and lock.
import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const GATEWAY = 'node_modules/@portkey-ai/gateway/build/start-server.js';

export function installPortkey(folder: string): void {
  if (existsSync(path.join(folder, GATEWAY))) return;
  mkdirSync(folder, { recursive: true });
  const own = path.join(import.meta.dirname, 'portkey');
  for (const file of ['package.json', 'package-lock.json']) copyFileSync(path.join(own, file), path.join(folder, file));
  execFileSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: folder });
}

/** Returns the command of the gateway. Portkey listens on every address; the preload restricts it to loopback. */
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
