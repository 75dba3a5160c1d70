// The edge's page of metrics: requests as the edge counts, sums and renders them, more of them at each read.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Meter } from '../../../edge/telemetry/meter.ts';
import { renderMetrics } from '../../../edge/telemetry/metric-table.ts';
import { StoredMetrics } from '../../../edge/telemetry/stored-metrics.ts';

const left = { limit: 60, remaining: 30 };
const request = {
  ...{ zone: 'eu', tenant: 'acme', action: 'transcribe', milliseconds: 120, audioSeconds: 4 },
  quota: { requests: left, audioSeconds: left },
};

export async function startEdgePage() {
  const [meter, stored] = [new Meter(), new StoredMetrics('eu')];
  const server = createServer((_, response) => {
    meter.count({ ...request, outcome: 'ok', model: 'reference-en', pool: 'pool' });
    meter.count({ ...request, outcome: 'field_invalid' });
    for (const [, report] of meter.take()) stored.add(report, Date.now());
    response.end(renderMetrics(new Map(stored.read(Date.now()))));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: () => server.close(),
  };
}
