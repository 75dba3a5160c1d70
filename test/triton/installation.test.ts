import { cp, mkdtemp, readFile, rm, stat, truncate, unlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findPython } from '../../infra/pool/triton/find-python.ts';
import { InstallProblem, installTriton } from '../../infra/pool/triton/install.ts';
import { run } from '../../infra/pool/triton/run.ts';
import { folder as installation } from './install.ts';

const here = path.resolve(import.meta.dirname, '../..');
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'auricle-triton-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe('T2: the installation of Triton', () => {
  it('is done once', async () => {
    const said: string[] = [];
    await installTriton({ folder: installation, log: (line) => said.push(line) });
    expect(said).toEqual([]);
  });

  it('repairs damaged files only', async () => {
    const copy = path.join(folder, 'copy');
    await cp(installation, copy, { recursive: true, verbatimSymlinks: true });
    const { backends, server } = await installTriton({ folder: copy });
    const stub = path.join(backends, 'python/triton_python_backend_stub');
    const { size } = await stat(stub);
    const before = await stat(server);
    await truncate(stub, 1_000);
    await unlink(path.join(backends, 'python/libtriton_python.so'));
    const said: string[] = [];
    await installTriton({ folder: copy, log: (line) => said.push(line) });
    expect(said).toEqual([]);
    expect((await stat(stub)).size).toBe(size);
    expect((await stat(server)).ino).toBe(before.ino);
  });

  it('reports a missing or unsuitable Python in one line', async () => {
    const nothing = installTriton({ folder: path.join(folder, 'none'), pythons: ['no-such-python'] });
    await expect(nothing).rejects.toThrow(InstallProblem);
    await expect(nothing).rejects.toThrow(/^no Python that will do: no-such-python is not there$/);
    expect(await findPython(['true'])).toEqual({ problem: 'no Python that will do: true is no Python' });
  });

  it('reports an unreachable package index in one line', async () => {
    const index = process.env.PIP_INDEX_URL;
    const links = process.env.PIP_FIND_LINKS;
    process.env.PIP_INDEX_URL = 'http://127.0.0.1:9/simple';
    process.env.PIP_RETRIES = '0';
    delete process.env.PIP_FIND_LINKS;
    try {
      const offline = installTriton({ folder: path.join(folder, 'offline') });
      await expect(offline).rejects.toThrow(
        /^pip cannot download Triton \(is the package index reachable\?\): ERROR: [^\n]+$/,
      );
    } finally {
      delete process.env.PIP_RETRIES;
      if (index === undefined) delete process.env.PIP_INDEX_URL;
      else process.env.PIP_INDEX_URL = index;
      if (links !== undefined) process.env.PIP_FIND_LINKS = links;
    }
  });

  it('refuses a wheel whose files differ from its RECORD', async () => {
    const wheel = path.join(folder, 'w.whl');
    const pack = `
import base64, hashlib, sys, zipfile
digest = base64.urlsafe_b64encode(hashlib.sha256(b"good").digest()).rstrip(b"=").decode()
with zipfile.ZipFile(sys.argv[1], "w") as archive:
    archive.writestr("part/a", "good")
    archive.writestr("part/b", sys.argv[2])
    archive.writestr("w.dist-info/RECORD", "part/a,sha256=%s,4\\npart/b,sha256=%s,4\\nw.dist-info/RECORD,,\\n" % (digest, digest))`;
    const unpack = path.join(here, 'infra/pool/triton/unpack.py');
    const out = path.join(folder, 'out');
    expect(await run('python3', ['-c', pack, wheel, 'good'])).toMatchObject({ ok: true });
    expect(await run('python3', [unpack, wheel, out, 'part/'])).toEqual({
      ok: true,
      output: '{"part/a": 4, "part/b": 4}\n',
    });
    expect(await run('python3', ['-c', pack, wheel, 'evil'])).toMatchObject({ ok: true });
    const refused = await run('python3', [unpack, wheel, out, 'part/']);
    expect(refused).toMatchObject({ ok: false, lastLine: "part/b is not what the wheel's RECORD says" });
  });

  it('A18: runs the same ONNX Runtime as the embedded engine', async () => {
    const own = JSON.parse(await readFile(path.join(here, 'package.json'), 'utf8')).dependencies['onnxruntime-node'];
    const pinned = await readFile(path.join(here, 'infra/pool/triton/packages.txt'), 'utf8');
    expect(pinned).toContain(`onnxruntime==${own} `);
  });
});
