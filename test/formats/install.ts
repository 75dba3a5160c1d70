// Finds ffmpeg, or installs Debian's, once and before all files.
import process from 'node:process';
import { run } from '../../infra/pool/triton/run.ts';

const has = async () => (await run('ffmpeg', ['-version'])).ok;

export async function setup(): Promise<void> {
  if (await has()) return;
  console.log('test:formats: installing the package ffmpeg');
  const environment = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  await run('apt-get', ['update', '-q'], environment);
  const got = await run('apt-get', ['install', '-q', '-y', '--no-install-recommends', 'ffmpeg'], environment);
  if (await has()) return;
  throw new Error(`test:formats cannot run: there is no ffmpeg (${got.ok ? 'the package has none' : got.lastLine})`);
}
