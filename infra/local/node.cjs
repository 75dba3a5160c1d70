// Runs its arguments under a Node that reads TypeScript. Plain CommonJS so that Node 20 can run it.
const { spawn } = require('node:child_process');
const path = require('node:path');
const { findNode } = require('./find-node.cjs');

const node = findNode();
const child = spawn(node, process.argv.slice(2), {
  stdio: process.send ? ['inherit', 'inherit', 'inherit', 'ipc'] : 'inherit',
  env: {
    ...process.env,
    PATH: path.dirname(node) + path.delimiter + process.env.PATH,
    // What every part would otherwise read and compile anew at each start: half of what a start costs.
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE || path.resolve(__dirname, '../../node_modules/.cache/node'),
    // ONNX Runtime reports to its vendor otherwise: what a command loads is its user's.
    ORT_DISABLE_TELEMETRY: '1',
    // The stack leaves when this process is gone, however it went.
    AURICLE_LAUNCHER: String(process.pid),
  },
});
// npm passes no SIGKILL on: when npm is gone, what it started goes too. Started by hand, this may outlive its shell.
if (process.env.npm_lifecycle_event) {
  const npm = process.ppid;
  setInterval(() => process.ppid === npm || child.kill('SIGTERM'), 500).unref();
}
// The terminal sends SIGINT to the whole process group, so the child has its own copy; the others are passed on.
process.on('SIGINT', () => {});
for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
child.on('exit', (code, signal) => {
  process.exit(code ?? 128 + (require('node:os').constants.signals[signal] ?? 0));
});
