// Holes of a year that the log of the following year decides.
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { audit } from '../../../infra/cli/audit/audit.ts';
import type { Arguments } from '../../../infra/cli/options.ts';
import { encodeLeaf, type Leaf } from '../../../shared/audit/leaf.ts';
import { hashLeaf, rootOf } from '../../../shared/audit/tree.ts';
import { at, event, filesOf, leavesOf, log, ORIGIN, opening, other, PREFIX, vkey } from './published-log.ts';

type Files = ReadonlyMap<string, Uint8Array>;
let files: Files = new Map();
let later: Files = new Map();
const LATER = PREFIX.replace('2026', '2027');

const server = createServer(({ url = '' }, response) => {
  if (url === '/v1/audit/log') {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ data: [{ zone: 'eu', year: 2026, vkey, prefix: PREFIX }] }));
    return;
  }
  const file = (url.startsWith(LATER) ? later : files).get(url.slice(PREFIX.length + 1));
  response.statusCode = file ? 200 : 404;
  response.end(file ?? '{}');
});
let edge = '';
beforeAll(async () => {
  await new Promise<void>((settle) => server.listen(0, '127.0.0.1', settle));
  edge = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.close();
  server.closeAllConnections();
});
beforeEach(() => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'auricle-later-'));
  process.env.AURICLE_AUDIT = folder;
  later = new Map();
  return () => rmSync(folder, { recursive: true, force: true });
});

const verify = () => {
  const given: Partial<Arguments> = { edge, operands: ['verify'], year: '2026' };
  return audit(given as Arguments, {});
};

describe('C9 auricle audit verify: holes that the next year decides', () => {
  const missing = { from: 5, to: 9, outbox: 'gate/dev/eu', epoch: at(0) };
  const gap: Leaf = { ...opening, id: at(99), type: 'producer.gap', pseq: 2, ...missing };
  const from = { by: 'functions', p: 'functions/a', ep: at(0) };
  const work = (type: string, pseq: number): Leaf => ({ ...event(20, pseq, 0), type, ...from, req: at(7) });
  const own = (leaf: Leaf): Leaf => {
    const { tn: _, tseq: __, ...rest } = leaf;
    return rest as Leaf;
  };
  const year = [...leavesOf(5), gap, event(10, 10, 5), own(work('inference.attempt', 1))];

  async function publishBoth(signer = log, end: Partial<{ size: number }> = {}): Promise<void> {
    files = await filesOf(year);
    const hashes = year.map((leaf) => hashLeaf(encodeLeaf(leaf)));
    const root = Buffer.from(rootOf(hashes, 0, year.length)).toString('base64');
    const previous = { origin: ORIGIN, size: year.length, root, ...end };
    const accepted = { ...opening, ...from, id: at(101), type: 'gap.accept', pseq: 3, gap: '2026-5', ...missing };
    const leaves = [{ ...opening, previous }, own(work('inference.complete', 2)), accepted as Leaf];
    later = await filesOf(leaves, signer, ORIGIN.replace('2026', '2027'));
  }

  it('accepted gaps and ended work of New Year are no holes', async () => {
    files = await filesOf(year);
    expect(await verify()).toMatchObject({ exit: 20, value: { holes: { length: 2 } } });
    await publishBoth();
    expect(await verify()).toMatchObject({
      exit: 10,
      value: { accepted: [expect.stringMatching(/events 5 to 9 .*accepted in entry 2 of 2027$/)] },
    });
  });

  it('stay open where the next log has another key or another beginning', async () => {
    await publishBoth(other);
    expect(await verify()).toMatchObject({
      exit: 20,
      text: expect.stringContaining('verify --year 2027'),
    });
    await publishBoth(log, { size: 3 });
    expect(await verify()).toMatchObject({ exit: 20, text: expect.stringContaining('does not go on') });
  });
});
