import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import {
  createEngineMetrics,
  ENGINE_METRICS_BYTES,
  ownLines,
} from '../../../../infra/pool/agent/engine/metrics-page.ts';
import { type Bench, startBench } from '../start-agent.ts';

const page = [
  '# HELP nv_inference_request_success Number of successful inference requests',
  '# TYPE nv_inference_request_success counter',
  'nv_inference_request_success{model="a",version="1"} 3.000000',
  '',
].join('\n');

let server: Server | undefined;
let bench: Bench | undefined;
afterEach(async () => {
  await bench?.stop();
  await new Promise((resolve) => (server ? server.close(resolve) : resolve(undefined)));
  [server, bench] = [undefined, undefined];
});

async function serve(status: number, text: string): Promise<string> {
  server = createServer((_, response) => void response.writeHead(status).end(text));
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/metrics`;
}

describe('the engine’s metrics (R14)', () => {
  it('stand below the agent’s, on one page', async () => {
    bench = await startBench({ AURICLE_ENGINE_METRICS_URL: await serve(200, page) });
    const text = await (await fetch(`${bench.agent.url}/metrics`)).text();
    expect(text).toMatch(/^auricle_agent_slots_used 0$/m);
    expect(text).toMatch(/^auricle_agent_engine_metrics_up 1$/m);
    expect(text.endsWith(`\n${page}`)).toBe(true);
  });

  it('are missed, and that is said, when the engine does not answer', async () => {
    bench = await startBench({ AURICLE_ENGINE_METRICS_URL: await serve(500, page) });
    const text = await (await fetch(`${bench.agent.url}/metrics`)).text();
    expect(text).toMatch(/^auricle_agent_engine_metrics_up 0$/m);
    expect(text).not.toMatch(/^nv_/m);
  });

  it('are not fetched unless configured', async () => {
    bench = await startBench();
    expect(await (await fetch(`${bench.agent.url}/metrics`)).text()).not.toContain('auricle_agent_engine_metrics_up');
  });

  it('keep neither own names, foreign names nor an end of page', () => {
    const odd = `auricle_agent_slots_used 7\n# TYPE go_threads gauge\ngo_threads 1\n${page}# EOF\n`;
    expect(ownLines(odd)).toBe(page);
    const own = 'auricle_engine_sequences{model="m",version="1"} 2\n';
    expect(ownLines(`${odd}${own}`)).toBe(`${page}${own}`);
  });

  it('are not read beyond their bound', async () => {
    const line = `${page.split('\n')[2]}\n`;
    const url = await serve(200, line.repeat(ENGINE_METRICS_BYTES / line.length + 1));
    expect(await createEngineMetrics(url)()).toBeUndefined();
  });
});
