// Bundle of the source, for quick starts: one file a process in place of hundreds whose types Node would strip
// each time. Plain CommonJS, so that Node 20 can find it.
const { spawnSync } = require('node:child_process');
const { createHash } = require('node:crypto');
const { existsSync, readdirSync, readFileSync } = require('node:fs');
const path = require('node:path');
const { findNode } = require('./find-node.cjs');

const ROOT = path.resolve(__dirname, '../..');
const CACHE = path.join(ROOT, 'node_modules/.cache/auricle');
/** Folders without source. */
const SKIPPED = ['node_modules', 'repository', 'training', '__pycache__'];

function filesOf(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const file = path.join(folder, entry.name);
    if (!entry.isDirectory()) return [file];
    return SKIPPED.includes(entry.name) ? [] : filesOf(file);
  });
}

/** Returns a hash of the source and of the installed packages. */
function keyOf() {
  const hash = createHash('sha256').update(ROOT);
  const sources = ['shared', 'edge', 'functions', 'infra'].flatMap((folder) => filesOf(path.join(ROOT, folder)));
  for (const file of [...sources, path.join(ROOT, 'package-lock.json')]) {
    const content = readFileSync(file);
    hash.update(`\n${file} ${content.length}\n`).update(content);
  }
  return hash.digest('hex').slice(0, 16);
}

/** Returns the folder of the bundle of this source; makes it once per state of the source. */
function ensureBundle() {
  const folder = path.join(CACHE, keyOf());
  if (existsSync(folder)) return folder;
  const made = spawnSync(findNode(), [path.join(__dirname, 'make-bundle.ts'), folder], { cwd: ROOT, encoding: 'utf8' });
  if (made.status !== 0) throw new Error(`the source cannot be bundled:\n${made.stderr || made.error}`);
  return folder;
}

/** Returns the file of an entry in the bundle, by its TypeScript file relative to the repository. */
const inBundle = (entry) => path.join(ensureBundle(), entry.replace(/\.ts$/, '.js'));

module.exports = { ensureBundle, inBundle };
