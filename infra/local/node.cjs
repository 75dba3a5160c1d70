// Runs its arguments under a Node new enough to read TypeScript (22.18 or later): this one when it will do,
// otherwise the copy that npm installed from a platform package. Plain CommonJS so that Node 20 can run it.
const { spawn } = require('node:child_process');
const path = require('node:path');

function findNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > 22 || (major === 22 && minor >= 18)) return process.execPath;
  const platform = process.platform === 'win32' ? 'win' : process.platform;
  for (const name of [`node-${platform}-${process.arch}`, `node-bin-${platform}-${process.arch}`]) {
    try {
      const manifest = require.resolve(`${name}/package.json`);
      return path.join(path.dirname(manifest), require(manifest).bin.node);
    } catch {
      // Not the package of this platform: try the next spelling.
    }
  }
  console.error(
    `Node ${process.version} is too old and no packaged Node for ${platform}-${process.arch} is installed. ` +
      'Install Node 22.18 or later, then run this again.',
  );
  process.exit(1);
}

const node = findNode();
const child = spawn(node, process.argv.slice(2), {
  stdio: process.send ? ['inherit', 'inherit', 'inherit', 'ipc'] : 'inherit',
  env: {
    ...process.env,
    PATH: path.dirname(node) + path.delimiter + process.env.PATH,
    // What every part would otherwise read and compile anew at each start: half of what a start costs.
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE || path.resolve(__dirname, '../../node_modules/.cache/node'),
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
