import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { log } from './log.ts';
import { Repository } from './model/repository.ts';
import { serveInference, serveMetrics } from './serve.ts';
import { limits, readSettings } from './settings.ts';

async function listen(server: Server, host: string, port: number): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  return (server.address() as AddressInfo).port;
}

const settings = readSettings(process.argv.slice(2), process.env);
const repository = new Repository(settings);
const inference = serveInference(repository);
const metrics = serveMetrics(repository);

let stopping = false;
/** Running inferences end first; ending the process under a running thread would abort it. */
async function stop(why: string): Promise<void> {
  if (stopping) return;
  stopping = true;
  log('stopping', { why });
  const late = setTimeout(() => process.kill(process.pid, 'SIGKILL'), limits.drainMs);
  late.unref();
  inference.close();
  metrics.close();
  inference.closeIdleConnections();
  await repository.close();
  process.exit(0);
}
process.once('SIGTERM', () => void stop('SIGTERM'));
process.once('SIGINT', () => void stop('SIGINT'));
process.once('disconnect', () => void stop('the parent is gone'));

const port = await listen(inference, settings.host, settings.port);
const metricsPort = await listen(metrics, settings.host, settings.metricsPort);
await repository.start();
if (!stopping) {
  log('ready', { port, metricsPort, models: repository.served.length });
  process.send?.({ ready: true, port, metricsPort });
}
