// A revision is let into the tier that the engine loads from by its signature, and by nothing else.
import {
  appendFileSync,
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { digestFolder } from '../../../../infra/cli/models/files.ts';
import type { AgentEvent } from '../../../../infra/pool/agent/identity/record.ts';
import { createModelSource } from '../../../../infra/pool/agent/models/model-source.ts';
import { digestRevision, type KnownDigests } from '../../../../infra/pool/agent/models/revision.ts';
import type { LogEvent, LogFields } from '../../../../infra/pool/agent/telemetry/log.ts';
import { readModel } from '../../../../infra/pool/engine/model/read-model.ts';
import { digestOfFiles } from '../../../../shared/registry/revision.ts';
import { makeBundle } from '../../../../shared/registry/signature-bundle.ts';
import { signPayload } from '../../../../shared/registry/signature-envelope.ts';
import { writeManifest } from '../../../../shared/registry/signature-manifest.ts';
import { seeds } from '../../../seeds.ts';
import { makeP256, makeSm2, type Person, signerOf } from '../../../shared/registry/people.ts';

const folder = mkdtempSync(path.join(os.tmpdir(), 'auricle-entry-'));
const repository = path.join(folder, 'repository');
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let ann: Person;
let bob: Person;
beforeAll(async () => {
  ann = { name: 'ann', key: await makeP256() };
  bob = { name: 'bob', key: makeSm2() };
});

const network = path.join(repository, 'network', '1', 'model.onnx');
beforeEach(() => {
  rmSync(repository, { recursive: true, force: true });
  mkdirSync(path.dirname(network), { recursive: true });
  mkdirSync(path.join(repository, 'speech'));
  writeFileSync(path.join(repository, 'speech', 'config.pbtxt'), config);
  writeFileSync(path.join(repository, 'network', 'config.pbtxt'), 'platform: "onnxruntime_onnx"');
  writeFileSync(network, 'weights');
});
const config = `platform: "ensemble"
  ensemble_scheduling { step [ { model_name: "network" model_version: -1 } ] }
  parameters { key: "task" value { string_value: "infer" } }`;

async function sign(person: Person, hash: 'sha256' | 'sm3' = 'sha256', ending = '.sig') {
  const digests = await digestFolder(repository, ['speech']);
  const revision = digestOfFiles(digests.map((one) => ({ name: one.name, digest: one.sha256 })));
  const files = digests.map((one) => ({ name: one.name, digest: one[hash] }));
  const signed = await signPayload(writeManifest({ name: 'speech', hash, files, revision }), person.key);
  writeFileSync(path.join(repository, `speech${ending}`), JSON.stringify(makeBundle(signed)));
  return revision;
}

function open(strict = true) {
  const lines: [LogEvent, LogFields | undefined][] = [];
  const events: AgentEvent[] = [];
  const entry = {
    agent: 'agent-1',
    signers: [ann, bob].map(signerOf),
    strict,
    record: (one: AgentEvent) => events.push(one),
  };
  const read = createModelSource({
    repository,
    now: () => 0,
    log: (event, fields) => lines.push([event, fields]),
    run: async () => Promise.reject(new Error('no engine')),
    entry,
  });
  return { read, served: async () => (await read()).map(({ description }) => description.revision), lines, events };
}

/** Flips a bit like a failing disk or an attacker, without a newer date. */
function flipLastByte(file: string) {
  const { size, atime, mtime } = statSync(file);
  const opened = openSync(file, 'r+');
  writeSync(opened, Buffer.of(1), 0, 1, size - 1);
  closeSync(opened);
  utimesSync(file, atime, mtime);
}

describe('A15: only signed revisions are served', () => {
  it.each([
    ['P-256', () => ann, 'sha256', '.sig'],
    ['SM2', () => bob, 'sm3', '.sm2.sig'],
  ] as const)('by %s; what has changed since is another revision and is refused', async (_, person, hash, ending) => {
    const revision = await sign(person(), hash, ending);
    const { served, lines, events } = open();
    expect(await served()).toEqual([revision]);
    expect(lines).toEqual([]);
    flipLastByte(network);
    expect(await served()).toEqual([]);
    expect(await served()).toEqual([]);
    expect(lines[0]).toMatchObject([
      'model-refused',
      { model: 'speech', detail: expect.stringContaining('network/1/model.onnx') },
    ]);
    // Told once, without anything of the file.
    expect(events).toEqual([
      {
        type: 'model.revision',
        agent: 'agent-1',
        action: 'refused',
        model: 'speech',
        revision: lines[0]?.[1]?.revision,
      },
    ]);
  });

  it('an extra or missing file, an unknown, absent or broken signature', async () => {
    const why = async (strict = true) => {
      const { served, lines } = open(strict);
      expect(await served()).toEqual([]);
      return lines.at(-1)?.[1]?.detail;
    };
    await sign(ann);
    writeFileSync(path.join(repository, 'network', 'more.txt'), '');
    expect(await why()).toBe('the file "network/more.txt" is not signed');
    await sign(ann);
    const compiled = path.join(repository, 'network', '1', '__pycache__');
    mkdirSync(compiled);
    writeFileSync(path.join(compiled, 'model.cpython-311.pyc'), '');
    expect(await why()).toMatch(/__pycache__\/model.cpython-311.pyc" is not signed: .* mounted read-only$/);
    rmSync(compiled, { recursive: true });
    rmSync(path.join(repository, 'network', 'more.txt'));
    expect(await why()).toBe('the file "network/more.txt" is missing');
    await sign({ name: 'ann', key: await makeP256() });
    expect(await why(false)).toContain('not by a known key');
    await sign(ann);
    writeFileSync(path.join(repository, 'speech.sm2.sig'), '{}');
    expect(await why(false)).toContain('no sigstore bundle');
    for (const ending of ['.sig', '.sm2.sig']) rmSync(path.join(repository, `speech${ending}`));
    expect(await why()).toBe('it is not signed');
  });

  it('a folder of another name: the signed paths bind the name', async () => {
    await sign(ann);
    for (const file of ['speech', 'speech.sig']) {
      renameSync(path.join(repository, file), path.join(repository, file.replace('speech', 'other')));
    }
    const { served, lines } = open();
    expect(await served()).toEqual([]);
    expect(lines[0]?.[1]).toMatchObject({ model: 'other', detail: expect.stringContaining('is not signed') });
  });

  it('any link among its files, which no digest covers', async () => {
    await sign(ann);
    const elsewhere = path.join(folder, 'elsewhere');
    mkdirSync(elsewhere, { recursive: true });
    writeFileSync(path.join(elsewhere, 'model.onnx'), 'other weights');
    mkdirSync(path.join(repository, 'network', '2'));
    const places = [
      [path.join(elsewhere, 'model.onnx'), path.join('2', 'model.onnx')],
      [elsewhere, '3'],
    ] as const;
    for (const [from, to] of places) {
      symlinkSync(from, path.join(repository, 'network', to));
      const { served, lines } = open(false);
      expect(await served()).toEqual([]);
      const detail = `network/${to.replaceAll(path.sep, '/')} is neither a file nor a folder`;
      expect(lines).toEqual([['model-broken', { model: 'speech', detail }]]);
      // The embedded engine does not follow it either.
      expect(await readModel(repository, 'network')).toMatchObject({ ok: false });
      rmSync(path.join(repository, 'network', to));
    }
    expect(await open().served()).toHaveLength(1);
  });

  it('the steps of a step are signed as well, and loops of them end', async () => {
    const inner = path.join(repository, 'inner');
    mkdirSync(inner);
    const steps = (...names: string[]) =>
      `ensemble_scheduling { step [ ${names.map((name) => `{ model_name: "${name}" model_version: -1 }`).join(', ')} ] }`;
    writeFileSync(path.join(inner, 'config.pbtxt'), `platform: "ensemble" ${steps('network', 'speech')}`);
    writeFileSync(path.join(repository, 'speech', 'config.pbtxt'), config.replace('"network"', '"inner"'));
    await sign(ann);
    expect(await open().served()).toHaveLength(1);
    flipLastByte(network);
    const { served, lines } = open();
    expect(await served()).toEqual([]);
    expect(lines[0]?.[1]?.detail).toContain('network/1/model.onnx');
    writeFileSync(path.join(inner, 'config.pbtxt'), `platform: "ensemble" ${steps('../elsewhere')}`);
    await expect(sign(ann)).rejects.toThrow('no name of a model');
    expect(await open().served()).toEqual([]);
  });

  it('files changed under an engine are noticed unread, whatever their date', async () => {
    await sign(ann);
    const { read, served, lines } = open();
    const [model] = await read();
    expect(await model?.unchanged?.()).toBe(true);
    flipLastByte(network);
    expect(await model?.unchanged?.()).toBe(false);
    await sign(ann);
    const [again] = await read();
    expect(await again?.unchanged?.()).toBe(true);
    writeFileSync(path.join(repository, 'network', 'more.txt'), '');
    expect(await again?.unchanged?.()).toBe(false);
    // Said once, however often it is looked at.
    expect([await served(), await served(), lines.length]).toEqual([[], [], 1]);
  });

  it('a development pool serves unsigned revisions, and logs it once', async () => {
    const { served, lines } = open(false);
    expect(await served()).toHaveLength(1);
    expect(await served()).toHaveLength(1);
    expect(lines.map(([event]) => event)).toEqual(['model-unsigned']);
  });

  it('a network of any size: its last byte counts, in constant memory', async () => {
    // Holes take no room and are read like everything else.
    const size = seeds > 200 ? 500_000_000 : 32_000_000;
    truncateSync(network, size - 1);
    appendFileSync(network, '\0');
    const revision = await sign(ann);
    const { served } = open();
    const before = process.memoryUsage().arrayBuffers;
    expect(await served()).toEqual([revision]);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(size / 2);
    flipLastByte(network);
    expect(await served()).toEqual([]);
  }, 60_000);
});

describe('A16: a switch hashes nothing', () => {
  it('a folder moved away and back is still cached', async () => {
    const known: KnownDigests = new Map();
    const find = async () => (await digestRevision(repository, ['speech', 'network'], [], known)).revision;
    const first = await find();
    const [current, aside] = [path.join(repository, 'network'), path.join(folder, 'aside')];
    renameSync(current, aside);
    mkdirSync(path.dirname(network), { recursive: true });
    writeFileSync(network, 'other weights');
    expect(await find()).not.toBe(first);
    const read = new Map(known);
    rmSync(current, { recursive: true });
    renameSync(aside, current);
    expect(await find()).toBe(first);
    // Each as it was read the first time.
    for (const [id, entry] of known) expect(read.get(id)).toBe(entry);
  });
});
