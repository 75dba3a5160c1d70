// A Prometheus server that scrapes an agent with the labels of a PodMonitor, and an edge, and evaluates rule files.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { stringify } from 'yaml';
import { prometheus } from './install.ts';

export interface Series {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [time: number, value: string];
}

type Answer =
  | { readonly status: 'success'; readonly data: { readonly result: readonly Series[] } }
  | { readonly status: 'error'; readonly error: string };

/** Labels that the Prometheus operator sets for the agent's container of pod `pool-0`. */
const podLabels = { namespace: 'pools', pod: 'pool-0', container: 'agent', endpoint: 'agent' };

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** Starts a server that scrapes and evaluates each second, whatever interval the groups of rules name. */
export async function startPrometheus(pages: { agent: string; edge: string }, rules: readonly string[]) {
  const folder = mkdtempSync(path.join(tmpdir(), 'auricle-prometheus-'));
  for (const file of rules) {
    const often = readFileSync(file, 'utf8').replaceAll(/^ +interval: \d+s$/gm, '');
    writeFileSync(path.join(folder, path.basename(file)), often);
  }
  const config = {
    global: { scrape_interval: '1s', evaluation_interval: '1s' },
    rule_files: rules.map((file) => path.basename(file)),
    scrape_configs: [
      { job_name: 'pools/pool', static_configs: [{ targets: [new URL(pages.agent).host], labels: podLabels }] },
      { job_name: 'auricle-edge', static_configs: [{ targets: [new URL(pages.edge).host] }] },
    ],
  };
  writeFileSync(path.join(folder, 'prometheus.yaml'), stringify(config));
  const address = `127.0.0.1:${await freePort()}`;
  const server = spawn(
    prometheus,
    [
      `--config.file=${path.join(folder, 'prometheus.yaml')}`,
      `--storage.tsdb.path=${path.join(folder, 'data')}`,
      `--web.listen-address=${address}`,
    ],
    { stdio: 'ignore' },
  );
  return {
    /** Returns the series of a query; throws when the server cannot parse it. */
    async query(query: string): Promise<readonly Series[]> {
      const url = `http://${address}/api/v1/query?${new URLSearchParams({ query })}`;
      const answer = (await (await fetch(url)).json()) as Answer;
      if (answer.status === 'error') throw new Error(`${query}: ${answer.error}`);
      return answer.data.result;
    },
    async stop() {
      const closed = once(server, 'close');
      server.kill('SIGTERM');
      await closed;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export type Prometheus = Awaited<ReturnType<typeof startPrometheus>>;
