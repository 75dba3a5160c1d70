import { describe, expect, it } from 'vitest';
import { CHART, direct, example, examples, merge, run, template, type Values } from './helm.ts';
import { helm, KUBERNETES, kubeconform, kubeScore, SCHEMA_LOCATION } from './install.ts';

const aks = example('aks-triton');
const without = { cloud: 'eks', confidential: { enabled: false } };
const speech = { image: { repository: 'registry.example.com/speech', tag: '1' }, languages: ['en'] };
const engines: Record<string, Values> = {
  embedded: { engine: { kind: 'embedded' }, accelerator: { type: 'cpu' } },
  triton: { engine: { kind: 'triton' }, accelerator: { type: 'l4' } },
  trtllm: { engine: { kind: 'trtllm' }, accelerator: { type: 'h100' } },
  'openai-compatible': { engine: { kind: 'openai-compatible', ...speech }, accelerator: { tensorParallel: 4 } },
  riva: { engine: { kind: 'riva', ...speech, envSecrets: ['ngc'] }, accelerator: { type: 'a100-80' } },
};
const gateways = ['none', 'gatewayApi', 'traefik', 'nginx', 'loadBalancer'];
const options: Record<string, Values> = {
  'claims of devices': { accelerator: { mode: 'dra', tensorParallel: 2 } },
  'a MIG slice': { accelerator: { resource: 'nvidia.com/mig-1g.10gb', gibibytes: 10 } },
  'a store of the node': { models: { hostPath: '/var/lib/auricle-models', names: ['asr', 'asr-zh'], target: 'h100' } },
  'bare defaults': { podMonitor: { enabled: false }, models: { claim: '' } },
  'a role and tokens of others': {
    functions: { awsRoleArn: 'arn', releaseUrl: '', releaseVault: 'https://v.vault.azure.net' },
    poolToken: { secret: '', provider: { url: 'https://id.example.com', client: 'a', assertionFile: '/a' } },
  },
  'all of a pod': {
    ...{ priorityClassName: 'speech', podLabels: { 'azure.workload.identity/use': 'true' } },
    ...{ podAnnotations: { a: 'b' }, nodeSelector: { pool: 'gpu' }, tolerations: [{ key: 'a', operator: 'Exists' }] },
    ...{ imagePullSecrets: [{ name: 'registry' }], test: { tokenSecret: 'tenant' }, state: { storageClass: 'fast' } },
    ...{ serviceAccount: { annotations: { 'eks.amazonaws.com/role-arn': 'arn' } }, engine: { keySecret: 'key' } },
    ...{ extraObjects: [{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'more' } }] },
  },
};
const matrix: Record<string, Values> = Object.fromEntries([
  ...examples.map((name) => [name, example(name)]),
  ...Object.entries(engines).flatMap(([engine, over]) =>
    ['aks', 'eks', 'other'].map((cloud) => [`${engine} on ${cloud}`, merge(aks, merge(over, { ...without, cloud }))]),
  ),
  ...gateways.flatMap((kind) =>
    ['aks', 'eks'].map((cloud) => [`${kind} on ${cloud}`, merge(aks, { ...without, cloud, gateway: { kind } })]),
  ),
  ['a server for direct gRPC', merge(aks, { directGrpc: direct })],
  ...Object.entries(options).map(([name, over]) => [name, merge(aks, over)]),
]);

/** Findings of kube-score that stay, by object and check, each with its reason. */
const accepted: readonly RegExp[] = [
  // A limit throttles a realtime process that has used its share in the first milliseconds of a period.
  / container-resources$/,
  // Images are named by version or digest: a registry that is down must not stop a restart.
  / container-image-pull-policy$/,
  // The label of a pod's name, which the Services of single pods select, is set by the controller.
  /-\d service-targets-pod$/,
  // The pod of `helm test` lives for seconds.
  /-test pod-networkpolicy$/,
];

interface Scored {
  readonly object_name: string;
  readonly checks: readonly {
    readonly check: { readonly id: string };
    readonly grade: number;
    readonly skipped: boolean;
  }[];
}
/** Highest grade of kube-score that is a critical finding. */
const CRITICAL = 1;

describe.each(examples)('the example %s', (name) => {
  it('passes helm lint', async () => {
    const { code, output } = await run(helm, [
      ...['lint', '--strict', '--kube-version', KUBERNETES, CHART],
      ...['-f', `${CHART}/examples/${name}.yaml`],
    ]);
    expect(code, output).toBe(0);
  });
});

describe.concurrent.each(Object.keys(matrix))('R6, L2: %s', (name) => {
  it('renders objects that strict schemas and kube-score accept', async () => {
    const { output, errors } = await template(matrix[name] ?? {});
    expect(errors).toBe('');
    const checked = await run(kubeconform, ['-strict', '-summary', '-schema-location', SCHEMA_LOCATION], output);
    expect(checked.output).toMatch(/Invalid: 0, Errors: 0, Skipped: 0/);
    const scored = await run(kubeScore, ['score', '--kubernetes-version', 'v1.36', '-o', 'json', '-'], output);
    const findings = (JSON.parse(scored.output) as readonly Scored[]).flatMap(({ object_name, checks }) =>
      checks
        .filter(({ grade, skipped }) => grade === CRITICAL && !skipped)
        .map(({ check }) => `${object_name} ${check.id}`),
    );
    expect(findings.filter((finding) => !accepted.some((pattern) => pattern.test(finding)))).toEqual([]);
  });
});
