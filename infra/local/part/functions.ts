// The functions app, in the local host, with the same `host.json` and the same triggers as in the cloud.
import path from 'node:path';
import process from 'node:process';
import { startHost } from '../functions-host/host.ts';
import { ROOT } from '../root.ts';

const host = await startHost({
  folder: path.join(ROOT, 'functions'),
  entry: 'triggers.ts',
  port: Number(process.env.PORT),
  settings: process.env,
  log: (level, text) => console.error(`${level}: ${text}`),
});
process.on('SIGTERM', () => {
  void host.stop().finally(() => process.exit(0));
});
process.send?.('ready');
