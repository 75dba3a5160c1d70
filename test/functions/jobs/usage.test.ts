// Usage reports of uploads to an edge that refuses them.

import { generateKeyPairSync } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { beforeEach, describe, expect, it } from 'vitest';
import type { JobContext } from '../../../functions/jobs/context.ts';
import { onStalled } from '../../../functions/jobs/on-timer.ts';
import { MINUTE } from '../../../functions/jobs/record.ts';
import { listTenants } from '../../../functions/jobs/tenants.ts';
import { bookAll, USAGE_REPORT_DAYS } from '../../../functions/jobs/usage.ts';
import { openUsage, UsageRefused } from '../../../functions/store/usage.ts';
import { DAY_MS } from '../../../shared/day.ts';
import type { UploadUsage } from '../../../shared/jobs/usage.ts';
import { Quiet } from './quiet.ts';

let quiet: Quiet;
let office: JobContext;
let answer: (usage: UploadUsage) => void;
beforeEach(() => {
  quiet = new Quiet();
  answer = () => {};
  office = {
    ...quiet.instant(),
    usage: {
      async book(usage) {
        answer(usage);
        quiet.ledger.book(usage);
      },
    },
  };
  quiet.use(office);
});

const rows = () => quiet.table.scan('acme', 'b!', 'b!~', 1_000);
const ended = async (count: number) => {
  const ids: string[] = [];
  for (let file = 0; file < count; file += 1) {
    const upload = await quiet.uploaded();
    await quiet.outcome(upload, 'transcript', { pieces: 1, seconds: 1 });
    ids.push(upload.id);
  }
  return ids;
};

describe('C11: use that the edge does not book', () => {
  it('a row that it refuses delays no other row', async () => {
    answer = () => {
      throw new Error('away');
    };
    const ids = await ended(210);
    const bad = new Set(ids.slice(0, 205));
    answer = ({ upload }) => {
      if (bad.has(upload)) throw new UsageRefused(400);
    };
    await bookAll(office, 'acme');
    expect([...quiet.ledger.booked.values()].map(({ upload }) => upload)).toEqual(ids.slice(205));
    expect(rows()).toHaveLength(205);
  });

  it('while unreachable it is called once', async () => {
    let asked = 0;
    answer = () => {
      asked += 1;
      throw new Error('away');
    };
    await ended(3);
    asked = 0;
    await bookAll(office, 'acme');
    expect([asked, rows()]).toEqual([1, expect.objectContaining({ length: 3 })]);
  });

  it('a refused row keeps its tenant, and is dropped when old', async () => {
    const life = USAGE_REPORT_DAYS * DAY_MS;
    answer = () => {
      throw new UsageRefused(422);
    };
    await ended(1);
    quiet.wait(life - MINUTE);
    // Its upload is forgotten by now.
    await onStalled(office);
    await onStalled(office);
    expect([...quiet.table.of('acme').keys()]).toEqual([expect.stringMatching(/^b!/)]);
    expect(await listTenants(office, 9)).toEqual(['acme']);
    quiet.wait(MINUTE);
    await onStalled(office);
    expect(rows()).toEqual([]);
    expect(await listTenants(office, 9)).toEqual([]);
  });

  it('refusals of a row differ from failures of the edge', async () => {
    let status = 200;
    const server = createServer((request, response) =>
      request.resume().on('end', () => response.writeHead(status).end()),
    );
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    try {
      const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      const SERVICE_KEY = privateKey.export({ format: 'jwk' }) as never;
      const { port } = server.address() as AddressInfo;
      const usage = openUsage({ EDGE_URL: `http://127.0.0.1:${port}`, SERVICE_KEY });
      const told: Record<number, string> = {};
      for (status of [200, 400, 422, 401, 403, 429, 503]) {
        told[status] = await usage.book({ tenant: 'acme' } as UploadUsage).then(
          () => 'booked',
          (error) => (error instanceof UsageRefused ? 'refused' : 'away'),
        );
      }
      const away = { 401: 'away', 403: 'away', 429: 'away', 503: 'away' };
      expect(told).toEqual({ 200: 'booked', 400: 'refused', 422: 'refused', ...away });
    } finally {
      server.close();
      server.closeAllConnections();
    }
  });
});
