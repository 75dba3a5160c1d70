// Unpacks Debian's package of Prometheus, which brings promtool, without installing it. Once, before all files.
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { run } from '../../../infra/pool/triton/run.ts';

/** Folder that survives runs. */
const tools = path.resolve(process.env.AURICLE_TOOLS ?? path.join(import.meta.dirname, '../../../.auricle/tools'));
const folder = path.join(tools, 'prometheus');
export const prometheus = path.join(folder, 'usr/bin/prometheus');
export const promtool = path.join(folder, 'usr/bin/promtool');

export async function setup(): Promise<void> {
  if (existsSync(promtool)) return;
  await mkdir(tools, { recursive: true });
  const scratch = await mkdtemp(path.join(tools, 'fetch-'));
  const download = () => run('bash', ['-c', `cd "${scratch}" && apt-get download -q prometheus`]);
  let got = await download();
  if (!got.ok && (await run('apt-get', ['update', '-q'])).ok) got = await download();
  if (!got.ok) throw new Error(`test:chart cannot run: apt-get download prometheus: ${got.lastLine}`);
  const [name = ''] = await readdir(scratch);
  const unpacked = await run('dpkg', ['-x', path.join(scratch, name), path.join(scratch, 'files')]);
  if (!unpacked.ok) throw new Error(`test:chart cannot run: dpkg -x ${name}: ${unpacked.lastLine}`);
  await rename(path.join(scratch, 'files'), folder);
  await rm(scratch, { recursive: true });
}
