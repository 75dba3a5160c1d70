// One stack for all test files that do not change it: it starts with the first of them and ends with the run.
// Starting a stack costs more than most of these files' own work.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json as readJson } from 'node:stream/consumers';
import type { TestProject } from 'vitest/node';
import { allPools, type Pool } from '../../infra/local/pools.ts';
import { type Running, run } from './running.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Address at which a file requests the shared stack. */
    sharedStack: string;
  }
}

let owner: Promise<Running> | undefined;
/** Foreign clients speak all languages, which the pools of a plain start do not serve. */
let pools: readonly Pool[] | undefined;

/** Spans of requests whose callers sampled them: the stack begins no trace itself. */
const spans: unknown[] = [];

const door = createServer(async (request, response) => {
  if (request.url === '/spans') return void response.end(JSON.stringify(spans));
  if (request.method === 'POST') {
    spans.push(await readJson(request));
    return void response.end('{}');
  }
  const { port } = door.address() as AddressInfo;
  const endpoint = `http://127.0.0.1:${port}`;
  const collector = { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_TRACES_SAMPLER_ARG: '0' };
  owner ??= run({ ...(pools && { pools }), collector });
  try {
    const { stack, state } = await owner;
    response.end(JSON.stringify({ stack, state }));
  } catch (error) {
    response.writeHead(500).end(String(error));
  }
});

export async function setup(project: TestProject): Promise<void> {
  if (project.name === 'clients') pools = allPools;
  await new Promise<void>((settle) => door.listen(0, '127.0.0.1', settle));
  project.provide('sharedStack', `http://127.0.0.1:${(door.address() as AddressInfo).port}`);
}

export async function teardown(): Promise<void> {
  door.close();
  await owner?.then((one) => one.end()).catch(() => {});
}
