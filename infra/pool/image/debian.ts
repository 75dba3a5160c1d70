import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';

const execute = promisify(execFile);

/** A package that was unpacked. */
export interface DebianPackage {
  readonly name: string;
  readonly version: string;
  /** Digest of the package's file, hexadecimal. */
  readonly sha256: string;
}

/**
 * Downloads packages for an architecture (`amd64`, `arm64`) with apt, which checks their signatures, and unpacks them
 * into `target`. Uses package lists of its own, so the machine keeps one architecture. Throws when a command fails.
 */
export async function unpackDebian(
  names: readonly string[],
  architecture: string,
  target: string,
): Promise<DebianPackage[]> {
  const scratch = `${target}.apt`;
  await rm(scratch, { recursive: true, force: true });
  await mkdir(path.join(scratch, 'lists/partial'), { recursive: true });
  await mkdir(target, { recursive: true });
  await writeFile(path.join(scratch, 'status'), '');
  const settings = {
    'APT::Architecture': architecture,
    'APT::Architectures': architecture,
    // The folder may be one that apt's own user cannot write to.
    'APT::Sandbox::User': 'root',
    'Dir::State': scratch,
    'Dir::State::status': path.join(scratch, 'status'),
    'Dir::Cache': path.join(scratch, 'cache'),
  };
  const options = Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
  const apt = (...args: readonly string[]) => execute('apt-get', [...options, '-q', ...args], { cwd: scratch });
  await apt('update');
  await apt('download', ...names);
  const files = (await readdir(scratch)).filter((file) => file.endsWith('.deb')).sort();
  const unpacked = files.map(async (file) => {
    const full = path.join(scratch, file);
    await execute('dpkg-deb', ['--extract', full, target]);
    const { stdout } = await execute('dpkg-deb', ['--field', full, 'Package', 'Version']);
    const [name = '', version = ''] = stdout
      .trim()
      .split(/\n?\w+: /)
      .slice(1);
    const sha256 = createHash('sha256')
      .update(await readFile(full))
      .digest('hex');
    return { name, version, sha256 };
  });
  const packages = await Promise.all(unpacked);
  await rm(scratch, { recursive: true, force: true });
  return packages;
}
