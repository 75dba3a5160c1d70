// A promise that is missed, over HTTP and on the command line: what a person sends, what the functions keep, and what the
// machine makes that has the files.
import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { HttpRequest } from '@azure/functions';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { ModelContext } from '../../../functions/registry/model-context.ts';
import * as models from '../../../functions/registry/on-models.ts';
import type { Answer } from '../../../infra/cli/answer.ts';
import { readArguments } from '../../../infra/cli/arguments.ts';
import { buildModel } from '../../../infra/cli/models/build.ts';
import { model } from '../../../infra/cli/models/model.ts';
import { makeNode, makeWeight, readModel, writeModel } from '../../../infra/pool/model-build/onnx/graph.ts';
import { writeTensor } from '../../../infra/pool/model-build/onnx/tensor.ts';
import { integerField, joinBytes, messageField, textField } from '../../../infra/pool/model-build/onnx/write-wire.ts';
import type { EventDraft } from '../../../shared/audit/event.ts';
import type { Evidence } from '../../../shared/registry/evidence.ts';
import type { SignerKey } from '../../../shared/registry/signature-key.ts';
import { ok } from '../../../shared/result.ts';
import { ModelBlobs } from '../../fake/model-blobs.ts';
import { RowsWithFiles } from '../../fake/rows-with-files.ts';
import { type Callers, makeCallers } from '../../functions/callers.ts';
import { forGrey } from '../../shared/registry/people.ts';
import { folderForTest } from '../local/folder.ts';

let callers: Callers;
beforeAll(async () => {
  callers = await makeCallers();
});

/** A store that has every file. */
const planNothing =
  () =>
  async ({ params }: HttpRequest) => ({
    status: 200,
    jsonBody: { revision: params.revision, complete: true, files: [], headers: {}, expires: 0 },
  });

const routes = [
  ['POST', /^\/v1\/models\/([^/]+)\/revisions\/([^/]+)\/files$/, planNothing],
  ['POST', /^\/v1\/models\/([^/]+)\/revisions$/, models.onRevision],
  ['GET', /^\/v1\/models\/([^/]+)\/revisions$/, models.onModel],
  ['GET', /^\/v1\/models\/([^/]+)\/revisions\/(.+)$/, models.onSeeRevision],
  ['POST', /^\/v1\/models\/([^/]+)\/transitions$/, models.onTransition],
] as const;

/** The edge, as far as it hands questions of operators on. */
async function serve(desk: ModelContext): Promise<string> {
  const server = createServer(async (incoming, outgoing) => {
    let text = '';
    for await (const chunk of incoming.setEncoding('utf8')) text += chunk;
    const found = routes.flatMap(([method, pattern, handler]) => {
      const [, name, revision] = (incoming.method === method && pattern.exec(incoming.url ?? '')) || [];
      return name === undefined
        ? []
        : [{ handler, params: { model: name, ...(revision && { revision: decodeURIComponent(revision) }) } }];
    })[0];
    if (!found) return outgoing.writeHead(404).end();
    const request = new HttpRequest({
      url: 'http://functions/api/models',
      method: incoming.method ?? '',
      params: found.params,
      headers: { authorization: `Bearer ${await callers.edgeToken('acme', { operate: true })}` },
      ...(text && { body: { string: text } }),
    });
    const { status = 500, jsonBody } = await found.handler(desk)(request);
    const { error } = (jsonBody ?? {}) as { error?: { reason: string; params?: object } };
    const said = error ? { error: { code: error.reason, message: JSON.stringify(error.params ?? {}) } } : jsonBody;
    outgoing.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(said));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Any number of rows of so many numbers, as an input or output of a graph. */
const rowsOf = (name: string, width: number) => {
  const shape = messageField(2, [messageField(1, [textField(2, 'N')]), messageField(1, [integerField(1, width)])]);
  return joinBytes([textField(1, name), messageField(2, [messageField(1, [integerField(1, 1), shape])])]);
};

/** `Y = X · W`, whose weights the words make. */
function networkOf(rows: number, columns: number, elements: (at: number) => number): Uint8Array {
  const weights = Float32Array.from({ length: rows * columns }, (_, at) => elements(at));
  return writeModel({
    nodes: [makeNode('MatMul', ['X', 'W'], ['Y'])],
    weights: [makeWeight(writeTensor('W', [rows, columns], weights))],
    inputs: [rowsOf('X', rows)],
    outputs: [rowsOf('Y', columns)],
    opset: 17,
    rest: {
      model: [integerField(1, 8), messageField(8, [integerField(2, 17)])],
      graph: [{ number: 2, raw: textField(2, 'g') }],
    },
    graphAt: 1,
  });
}

async function begin(widths: readonly [number, number] = [48, 16]) {
  const folder = folderForTest();
  const at = (...names: string[]) => path.join(folder, ...names);
  const write = (name: string, content: string | Uint8Array) => {
    mkdirSync(path.dirname(at(name)), { recursive: true });
    writeFileSync(at(name), content);
  };
  const signers = ['author', 'reviewer', 'quantiser'].map((name): SignerKey => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    write(`${name}.pem`, privateKey.export({ format: 'pem', type: 'pkcs8' }).toString());
    const key = createPublicKey(privateKey).export({ format: 'der', type: 'spki' }).toString('base64');
    return { name, key, ...(name === 'quantiser' && { worker: true as const }) };
  });
  write(
    'repository/speech/config.pbtxt',
    `platform: "ensemble" ensemble_scheduling { step [ { model_name: "network" model_version: -1 } ] }
    parameters { key: "precision" value { string_value: "fp32" } }`,
  );
  write(
    'repository/network/config.pbtxt',
    `name: "network" platform: "onnxruntime_onnx"
    input [ { name: "X" data_type: TYPE_FP32 dims: [ ${widths[0]} ] } ] output [ { name: "Y" data_type: TYPE_FP32 dims: [ ${widths[1]} ] } ]`,
  );
  write(
    'repository/network/1/model.onnx',
    networkOf(...widths, (place) => Math.sin(place)),
  );
  for (let n = 0; n < 3; n += 1) {
    const data = Array.from({ length: widths[0] }, (_, place) => Math.cos(n + place));
    write(
      `samples/${n}.json`,
      JSON.stringify({ inputs: [{ name: 'X', datatype: 'FP32', shape: [1, widths[0]], data }] }),
    );
  }
  const told: EventDraft[] = [];
  const desk: ModelContext = {
    rows: new RowsWithFiles(),
    blobs: new ModelBlobs(),
    signers,
    zone: 'eu',
    audit: {
      report: async (_zone, draft, id) => {
        told.push(draft);
        return ok({ id: id ?? '', producer: '', epoch: '', pseq: told.length });
      },
    },
    edge: undefined,
    settings: callers.settings,
    log: () => {},
    now: () => Date.now(),
  };
  const edge = await serve(desk);
  const key = (name: string) => ['--key', at(`${name}.pem`)];
  async function auricle(...words: string[]): Promise<Answer> {
    const given = readArguments(['model', ...words, '--edge', edge]);
    if ('problem' in given) throw new Error(given.problem);
    return model(given, {});
  }
  const watch = (...more: string[]) =>
    buildModel([
      'quantise',
      '--watch',
      'speech',
      '--models',
      at('repository'),
      '--out',
      at('made'),
      ...key('quantiser'),
      '--once',
      '--edge',
      edge,
      '--token',
      't',
      ...more,
    ]);
  const sign = (...more: string[]) => auricle('sign', at('repository'), 'speech', 'network', ...key('author'), ...more);
  async function showSlow(revision: string) {
    const slow: Evidence = { kind: 'latency', tool: 't', sla: 900, windows: [200, 200, 200] };
    write('evidence.json', JSON.stringify([...forGrey().filter(({ kind }) => kind !== 'latency'), slow]));
    return auricle('promote', 'speech', revision, ...key('reviewer'), '--evidence', at('evidence.json'));
  }
  return { at, auricle, watch, sign, key, showSlow, told };
}

const code = ({ value }: Answer) => (value as { error?: { code: string } }).error?.code;

describe('A15, A22: a revision that is too slow', () => {
  it('is made smaller by each method in turn, through the first gate again', async () => {
    const { at, auricle, watch, sign, key, showSlow, told } = await begin();
    expect(await sign('--sla', 'latencyMs=nothing')).toMatchObject({ exit: 2 });
    const source = ((await sign('--sla', 'latencyMs=100')).value as { revision: string }).revision;
    await auricle('register', 'speech', at('repository', 'speech.sig'));
    expect(await watch()).toMatchObject({ exit: 0, text: 'nothing is wanted' });
    const missed = await showSlow(source);
    expect([code(missed), missed.text]).toEqual(['sla_missed', expect.stringContaining('latencyMs 200, promised 100')]);
    // Asked again it says the same, and nothing more is wanted.
    expect(code(await showSlow(source))).toBe('rollout_held');

    const dynamic = await watch();
    expect(dynamic.value).toMatchObject({ made: [{ from: source, method: 'dynamic', revision: expect.any(String) }] });
    const [{ revision: first, folder }] = (dynamic.value as { made: [{ revision: string; folder: string }] }).made;
    expect(
      readModel(readFileSync(path.join(folder, 'network/1/model.onnx'))).nodes.map(({ operator }) => operator),
    ).toContain('MatMulInteger');
    expect(readFileSync(path.join(folder, 'speech/config.pbtxt'), 'utf8')).toContain('int8');
    expect(await auricle('verify', folder, 'speech', 'network', ...key('quantiser'))).toMatchObject({
      exit: 0,
      value: { revision: first },
    });
    const { revisions } = (await auricle('revisions', 'speech')).value as { revisions: { revision: string }[] };
    expect(revisions[1]).toMatchObject({
      revision: first,
      author: 'quantiser',
      stage: 'develop-verify',
      sla: { latencyMs: 100 },
      made: { from: source, method: 'dynamic' },
    });

    expect(code(await showSlow(first))).toBe('sla_missed');
    // A watcher without samples leaves the request to another.
    expect(await watch()).toMatchObject({ value: { made: [] } });
    const fixed = await watch('--calibrate', at('samples'), '--samples', '3');
    expect(fixed.value).toMatchObject({ made: [{ from: source, method: 'static' }] });
    const [{ revision: second }] = (fixed.value as { made: [{ revision: string }] }).made;
    expect(readFileSync(path.join(at('made'), `speech-${source.slice(7, 19)}-static`, 'speech.sig'), 'utf8')).toContain(
      'dsseEnvelope',
    );
    expect(code(await showSlow(second))).toBe('sla_missed');
    expect(code(await showSlow(second))).toBe('rollout_held');
    expect((await auricle('revisions', 'speech')).text).toContain(
      'stopped: latencyMs 200, promised 100; nothing is left to try',
    );
    expect(
      told.filter((one) => one.type === 'model.stage' && one.verdict === 'FAIL').map((one) => 'to' in one && one.to),
    ).toEqual(['develop-verify', 'develop-verify', 'stopped']);
    expect(await watch('--calibrate', at('samples'))).toMatchObject({ text: 'nothing is wanted' });

    expect(await auricle('takeover', 'speech', source, ...key('quantiser'), '--reason', 'why not')).toMatchObject({
      value: { missing: 1 },
    });
    expect(
      await auricle('takeover', 'speech', source, ...key('reviewer'), '--reason', 'it is good enough'),
    ).toMatchObject({ exit: 0, value: { missing: 0 } });
    expect(code(await showSlow(source))).toBe('sla_missed');
    expect(await watch('--calibrate', at('samples'))).toMatchObject({ text: 'nothing is wanted' });
  });

  it('without a smaller method left, the order is handed to a person', async () => {
    const { at, auricle, watch, sign, showSlow } = await begin([4, 4]);
    const source = ((await sign('--sla', 'latencyMs=100')).value as { revision: string }).revision;
    await auricle('register', 'speech', at('repository', 'speech.sig'));
    const written = async (...more: string[]) =>
      (await auricle('export', 'speech', '--out', at('export.json'), ...more)).exit;
    // Existing output is overwritten only with `-f`.
    expect([await written(), await written(), await written('-f')]).toEqual([0, 7, 0]);
    await showSlow(source);
    const made = await watch('--calibrate', at('samples'));
    expect(made.value).toMatchObject({
      made: [{ method: 'dynamic', problem: expect.stringContaining('unsupported') }, { method: 'static' }],
    });
    expect((await auricle('revisions', 'speech')).text).toMatch(/stopped: "static" cannot be made: unsupported/);
  });

  it('files that differ from the signed ones are left alone', async () => {
    const { at, auricle, watch, sign, showSlow } = await begin();
    const source = ((await sign('--sla', 'latencyMs=100')).value as { revision: string }).revision;
    await auricle('register', 'speech', at('repository', 'speech.sig'));
    await showSlow(source);
    writeFileSync(
      at('repository', 'network', '1', 'model.onnx'),
      networkOf(48, 16, (place) => Math.cos(place)),
    );
    expect(await watch()).toMatchObject({ value: { made: [] } });
    expect((await auricle('revisions', 'speech')).text).toContain('making: ');
  });
});
