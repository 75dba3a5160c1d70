// Finds Chromium, or installs Debian's, once and before all files. `CHROMIUM` names another one.
import process from 'node:process';
import { run } from '../../infra/pool/triton/run.ts';

const candidates = [process.env.CHROMIUM, 'chromium', 'chromium-browser', 'google-chrome'];

async function find(): Promise<string | undefined> {
  for (const candidate of candidates) {
    if (candidate !== undefined && (await run(candidate, ['--version'])).ok) return candidate;
  }
  return undefined;
}

export async function setup(): Promise<void> {
  let found = await find();
  if (found === undefined) {
    console.log('test:browser: installing the package chromium (about 400 MB)');
    const environment = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    await run('apt-get', ['update', '-q'], environment);
    const got = await run('apt-get', ['install', '-q', '-y', '--no-install-recommends', 'chromium'], environment);
    found = await find();
    if (found === undefined)
      throw new Error(
        `test:browser cannot run: there is no Chromium (${got.ok ? 'the package has none' : got.lastLine})`,
      );
  }
  process.env.CHROMIUM = found;
}
