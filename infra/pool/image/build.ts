// Builds the images of the pool agent and of the embedded engine as an OCI image layout:
//
//   node infra/local/node.cjs infra/pool/image/build.ts FOLDER
//
// Needs a Debian with apt, dpkg-deb and tar. Both images have the same layers: C libraries of Debian, Node of the npm
// registry, sources with their packages.
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { copyApplication, ROOT } from './application.ts';
import { unpackDebian } from './debian.ts';
import { Layout } from './layout.ts';
import { sbomOf } from './sbom.ts';

/** Packages of Debian that Node and ONNX Runtime load libraries of. */
const LIBRARIES = ['libc6', 'libgcc-s1', 'libstdc++6', 'libatomic1'];
/** Documentation in several languages; licences are in /usr/share/doc. */
const UNREAD = ['usr/share/lintian', 'usr/share/locale', 'usr/share/man'];
const load = createRequire(import.meta.url);

/** Copies Node to `target` and returns its version. */
function copyNode(target: string): string {
  const manifest = load.resolve(`node-linux-${process.arch}/package.json`);
  const { version, bin } = load(manifest) as { version: string; bin: { node: string } };
  cpSync(path.join(path.dirname(manifest), bin.node), path.join(target, 'usr/bin/node'));
  cpSync(path.join(path.dirname(manifest), 'LICENSE'), path.join(target, 'usr/share/doc/node/LICENSE'));
  return version;
}

/** Builds both images in `folder` and returns their digests, which attestation policies and the chart name. */
async function buildImages(folder: string): Promise<Record<string, string>> {
  const scratch = mkdtempSync(path.join(tmpdir(), 'auricle-image-'));
  try {
    const base = path.join(scratch, 'base');
    const runtime = path.join(scratch, 'runtime');
    const application = path.join(scratch, 'application');
    const architecture = process.arch === 'x64' ? 'amd64' : process.arch;
    const debian = await unpackDebian(LIBRARIES, architecture, base);
    for (const name of UNREAD) rmSync(path.join(base, name), { recursive: true, force: true });
    mkdirSync(path.join(base, 'etc'), { recursive: true });
    writeFileSync(path.join(base, 'etc/passwd'), 'auricle:x:10001:10001::/tmp:/usr/sbin/nologin\n');
    const version = copyNode(runtime);
    const npm = await copyApplication(path.join(application, 'app'), process.arch);
    const sbom = sbomOf(version, debian, npm);
    writeFileSync(path.join(application, 'sbom.cdx.json'), sbom);

    const layout = new Layout(folder);
    const layers = [base, runtime, application].map((source) => layout.addLayer(source));
    const release = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8')).version as string;
    const labels = { 'org.opencontainers.image.version': release, 'org.opencontainers.image.licenses': 'Apache-2.0' };
    const image = (entry: string) =>
      layout.addImage(architecture, layers, { entrypoint: ['/usr/bin/node', entry], labels });
    const images = { agent: image('infra/pool/agent/main.ts'), engine: image('infra/pool/engine/main.ts') };
    layout.finish(images);
    writeFileSync(path.join(folder, 'sbom.cdx.json'), sbom);
    return Object.fromEntries(Object.entries(images).map(([name, { digest }]) => [name, digest]));
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

const [folder] = process.argv.slice(2);
if (folder === undefined || existsSync(folder)) {
  process.stderr.write('usage: build.ts FOLDER, which does not exist yet\n');
  process.exit(2);
}
for (const [name, digest] of Object.entries(await buildImages(path.resolve(folder)))) {
  process.stdout.write(`${name} ${digest}\n`);
}
