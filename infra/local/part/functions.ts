// The functions app, in the local host, with the same `host.json` and the same triggers as in the cloud.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { bundleFolder } from '../bundle-entry.ts';
import { deliveriesOf } from '../functions-host/deliveries.ts';
import { startHost } from '../functions-host/host.ts';
import { ROOT } from '../root.ts';

// In the cloud the platform fills settings from a vault; here from files, because other programs can read an
// environment.
for (const name of ['WEBHOOK_KEY', 'SERVICE_KEY', 'AUDIT_KEY', 'AUDIT_P256_KEY', 'AUDIT_SIDECAR_KEY']) {
  const file = process.env[`${name}_FILE`];
  if (file) process.env[name] = readFileSync(file, 'utf8').trim();
}

// In the cloud the app package contains it (infra/azure/functions/pack.ts).
process.env.AUDIT_VERIFIER = path.join(bundleFolder(), 'verifier');

const host = await startHost({
  folder: path.join(ROOT, 'functions'),
  entry: fileURLToPath(new URL('../../../functions/triggers.ts', import.meta.url)),
  port: Number(process.env.PORT),
  settings: process.env,
  deliveries: deliveriesOf(process.env.AURICLE_BLOB_EVENTS),
  log: (level, text) => console.error(`${level}: ${text}`),
});
process.on('SIGTERM', () => {
  void host.stop().finally(() => process.exit(0));
});
process.send?.('ready');
