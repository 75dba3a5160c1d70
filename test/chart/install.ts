// Builds helm, kubeconform and kube-score from their Go modules, and JSON schemas from those of Kubernetes and of the
// operators whose objects the chart renders. Once; the Go checksum database verifies each module.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { findGo } from '../go/install.ts';
import { type SchemaSource, writeSchemas } from './schemas.ts';

/** Folder that survives runs. */
const folder = path.resolve(process.env.AURICLE_TOOLS ?? path.join(import.meta.dirname, '../../.auricle/tools'));
/** Longest build of a tool: helm takes 3 min of one core, more beside other suites at the lowest priority. */
const BUILD_MS = 900_000;

const place = (name: string, version: string) => path.join(folder, `${name}-${version}`, name);
const tools = {
  helm: { module: 'helm.sh/helm/v3/cmd/helm', version: '3.21.4' },
  kubeconform: { module: 'github.com/yannh/kubeconform/cmd/kubeconform', version: '0.7.0' },
  'kube-score': { module: 'github.com/zegl/kube-score/cmd/kube-score', version: '1.20.0' },
} as const;

export const helm = place('helm', tools.helm.version);
export const kubeconform = place('kubeconform', tools.kubeconform.version);
export const kubeScore = place('kube-score', tools['kube-score'].version);

/** Version of Kubernetes that charts are rendered for and checked against. */
export const KUBERNETES = '1.36.3';
const TRAEFIK = 'docs/content/reference/dynamic-configuration/kubernetes-crd-definition-v1.yml';
const sources: readonly SchemaSource[] = [
  { module: `k8s.io/kubernetes@v${KUBERNETES}`, files: 'api/openapi-spec/swagger.json' },
  { module: 'github.com/kedacore/keda/v2@v2.20.2', files: 'config/crd/bases' },
  { module: 'sigs.k8s.io/gateway-api@v1.6.1', files: 'config/crd/standard' },
  { module: 'github.com/prometheus-operator/prometheus-operator@v0.93.1', files: 'example/prometheus-operator-crd' },
  { module: 'github.com/traefik/traefik/v3@v3.7.13', files: TRAEFIK },
];
const sourcesHash = createHash('sha256').update(JSON.stringify(sources)).digest('hex').slice(0, 12);
const schemas = path.join(folder, `schemas-${sourcesHash}`);
/** Name of a kind's schema, as kubeconform's template; core kinds have no group. */
export const SCHEMA_LOCATION = `${schemas}/{{.ResourceKind}}-{{if ne .Group .ResourceAPIVersion}}{{.Group}}-{{end}}{{.ResourceAPIVersion}}.json`;

const environment = (more: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv => ({
  ...process.env,
  ...more,
  GOFLAGS: '-buildvcs=false',
  GOTOOLCHAIN: 'local',
});

async function go(args: readonly string[], env: NodeJS.ProcessEnv): Promise<string> {
  const done = promisify(execFile)(await findGo(), args, { env, timeout: BUILD_MS, maxBuffer: 2 ** 24 });
  const { stdout } = await done.catch((error: Error & { stderr?: string }) => {
    const last = error.stderr?.trim().split('\n').at(-1) ?? error.message;
    throw new Error(`test:chart cannot run: go ${args.join(' ')}: ${last} (is the Go module proxy reachable?)`);
  });
  return stdout;
}

/** Runs `make` on a folder beside `target` and renames it, so that a run that was cut short leaves nothing half made. */
async function once(target: string, make: (temporary: string) => Promise<unknown>): Promise<void> {
  if (existsSync(target)) return;
  const temporary = `${target}.${process.pid}`;
  await mkdir(temporary, { recursive: true });
  await make(temporary);
  // A run beside this one may have been faster.
  await rename(temporary, target).catch(() => rm(temporary, { recursive: true }));
}

export async function setup(): Promise<void> {
  for (const [name, { module, version }] of Object.entries(tools)) {
    await once(path.dirname(place(name, version)), (temporary) =>
      go(['install', '-ldflags', '-s -w', `${module}@v${version}`], environment({ GOBIN: temporary })),
    );
  }
  await once(schemas, async (temporary) => {
    for (const { module, files } of sources) {
      const downloaded = JSON.parse(await go(['mod', 'download', '-json', module], environment())) as { Dir: string };
      await writeSchemas(path.join(downloaded.Dir, files), temporary);
    }
  });
}
