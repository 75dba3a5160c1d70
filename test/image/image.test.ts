import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { clip, transcribeWith } from './pair.ts';

const execute = promisify(execFile);
const sources = path.resolve(import.meta.dirname, '../..');
let folder: string;
let printed: string;

const layoutAt = (name: string) => path.join(folder, name);
const build = async (name: string) =>
  (await execute(process.execPath, [path.join(sources, 'infra/pool/image/build.ts'), layoutAt(name)])).stdout;
const readBlob = async (digest: string) =>
  JSON.parse(await readFile(path.join(layoutAt('one'), 'blobs', digest.replace(':', '/')), 'utf8'));

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'auricle-image-'));
  printed = await build('one');
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe('T7 images of agent and engine', () => {
  it('have the same digests when they are built again', async () => {
    expect(printed).toMatch(/^agent sha256:[0-9a-f]{64}\nengine sha256:[0-9a-f]{64}\n$/);
    expect(await build('two')).toBe(printed);
  });

  it('run as a user, and name every package that they hold', async () => {
    const { config, layers } = await readBlob(printed.split(/[ \n]/)[1] as string);
    expect((await readBlob(config.digest)).config).toMatchObject({ User: '10001:10001', WorkingDir: '/app' });
    expect(layers).toHaveLength(3);
    const { components } = JSON.parse(await readFile(path.join(layoutAt('one'), 'sbom.cdx.json'), 'utf8'));
    const names = components.map(({ name }: { name: string }) => name);
    expect(names).toEqual(expect.arrayContaining(['node', 'libc6', 'onnxruntime-node', 'jose', 'zod']));
  });

  it('transcribe a recording from their own files alone', async () => {
    const { layers } = await readBlob(printed.split(/[ \n]/)[1] as string);
    const root = path.join(folder, 'root');
    await mkdir(root);
    for (const { digest } of layers) {
      const blob = path.join(layoutAt('one'), 'blobs', digest.replace(':', '/'));
      await execute('tar', ['--extract', '--gzip', '--file', blob, '--directory', root]);
    }
    // Volumes, which a container has beside its image: processes, models, and the folder of the agent's state.
    await mkdir(path.join(root, 'proc'));
    await cp(path.join(sources, 'infra/pool/models/repository'), path.join(root, 'models'), { recursive: true });
    await mkdir(path.join(root, 'state'));
    await execute('chown', ['10001:10001', path.join(root, 'state')]);
    const mount = 'mount --rbind /proc "$0/proc"';
    const enter = 'exec /usr/sbin/chroot --userspec=10001:10001 "$0" /usr/bin/node "$@"';
    const args = ['--mount', '/bin/sh', '-c', `${mount} && ${enter}`, root];
    const places = { root, sources: '/app', repository: '/models', folder: path.join(root, 'state') };
    expect(await transcribeWith({ command: '/usr/bin/unshare', args, ...places })).toBe(clip.text);
  });
});
