// The witness as it is deployed, in workerd, with keys that tests know.
import { convertV4MiniflareOptions, Log, LogLevel, Miniflare } from 'miniflare';
import type { WatchedLog } from '../../edge/witness/settings.ts';
import { bundleWorker } from '../../infra/local/bundle.ts';
import { readWorkerConfig } from '../../infra/local/worker-config.ts';
import { openSigningKey } from '../../shared/audit/note.ts';
import { formatNoteKey } from '../../shared/audit/note-key.ts';
import { toBase64 } from '../../shared/base64.ts';

export const WITNESS = 'witness.example/w1';
export const witnessSeed = new Uint8Array(32).fill(77);

export const witnessKey = formatNoteKey({
  type: 'cosignature',
  name: WITNESS,
  publicKey: (await openSigningKey(witnessSeed)).publicKey,
});

export interface WitnessWorker {
  ask(path: string, body?: Uint8Array<ArrayBuffer> | string): Promise<Response>;
  stop(): Promise<void>;
}

export async function startWitness(folder: string, logs: readonly WatchedLog[]): Promise<WitnessWorker> {
  const bundle = await bundleWorker('edge/witness/worker.ts', folder);
  const config = readWorkerConfig('edge/witness/wrangler.jsonc');
  const objects = config.durable_objects.bindings.map(({ name, class_name }) => [
    name,
    { className: class_name, useSQLite: true },
  ]);
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({
      log: new Log(LogLevel.ERROR),
      cf: false,
      modulesRoot: bundle.folder,
      modules: [{ type: 'ESModule', path: bundle.script }],
      compatibilityDate: config.compatibility_date,
      compatibilityFlags: config.compatibility_flags,
      bindings: { WITNESS_NAME: WITNESS, WITNESS_KEY: toBase64(witnessSeed), LOGS: JSON.stringify(logs) },
      durableObjects: Object.fromEntries(objects),
    }),
  );
  await miniflare.ready;
  return {
    async ask(path, body) {
      const given = body === undefined ? {} : { method: 'POST', body };
      const response = await miniflare.dispatchFetch(`http://witness.example${path}`, given);
      const headers = { 'content-type': response.headers.get('content-type') ?? '' };
      return new Response(await response.arrayBuffer(), { status: response.status, headers });
    },
    stop: () => miniflare.dispose(),
  };
}
