import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { serveInference, serveMetrics } from './http/serve.ts';
import { log } from './log.ts';
import { Repository } from './repository/repository.ts';
import { asksForHelp, readSettings, USAGE } from './settings.ts';

/** Longest drain of running inferences when the process stops. */
const ENGINE_DRAIN_MS = 10_000;
/** Longest flush of the last answers after the drain. */
const ENGINE_FLUSH_MS = 1_000;

async function listen(server: Server, host: string, port: number): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  return (server.address() as AddressInfo).port;
}

/** Reports an operator's error in one line, without a stack. */
function giveUp(error: unknown): never {
  process.stderr.write(`engine: ${lineOf(error)}\n`);
  process.exit(2);
}

function lineOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code, path } = error as NodeJS.ErrnoException;
  if (path === undefined || (code !== 'ENOENT' && code !== 'ENOTDIR')) return error.message;
  return `there is no folder ${path}: --repository or AURICLE_ENGINE_REPOSITORY must name the model repository`;
}

function settle() {
  try {
    return readSettings(process.argv.slice(2), process.env);
  } catch (error) {
    return giveUp(error);
  }
}

if (asksForHelp(process.argv.slice(2))) {
  process.stdout.write(USAGE);
  process.exit(0);
}
const settings = settle();
const repository = new Repository(settings);
const inference = serveInference(repository);
const metrics = serveMetrics(repository);

let stopping = false;
/** Stops after running inferences: ending the process under a running thread would abort it. */
async function stop(why: string): Promise<void> {
  if (stopping) return;
  stopping = true;
  log('stopping', { why });
  const late = setTimeout(() => process.kill(process.pid, 'SIGKILL'), ENGINE_DRAIN_MS);
  late.unref();
  const answered = new Promise((resolve) => inference.close(resolve));
  metrics.close();
  await repository.close();
  // Every request is decided; the answers remain to be sent. Idle keep-alive connections are closed.
  const sweep = setInterval(() => inference.closeIdleConnections(), 10);
  await Promise.race([answered, sleep(ENGINE_FLUSH_MS)]);
  clearInterval(sweep);
  process.exit(0);
}
process.once('SIGTERM', () => void stop('SIGTERM'));
process.once('SIGINT', () => void stop('SIGINT'));
process.once('disconnect', () => void stop('the parent is gone'));

const port = await listen(inference, settings.host, settings.port).catch(giveUp);
const metricsPort = await listen(metrics, settings.host, settings.metricsPort).catch(giveUp);
await repository.start().catch(giveUp);
if (!stopping) {
  log('ready', { port, metricsPort, models: repository.served.length });
  process.send?.({ ready: true, port, metricsPort });
}
