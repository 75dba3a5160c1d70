// Finds a Node that reads TypeScript (22.18 or later): this one when it will do, otherwise the copy that npm
// installed from a platform package. Plain CommonJS so that Node 20 can run it.
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

module.exports = { findNode };
