import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { example, merge, only, render, type Values } from './helm.ts';
import { type Container, container, environmentOf, podOf } from './pod.ts';

const aks = example('aks-triton');
const eks = example('eks-speech-server');
const pod = async (base: Values, over: Values = {}) => podOf(await render(merge(base, over)));
const gpus = ({ resources }: Container) => resources.limits['nvidia.com/gpu'];
const seconds = ({ periodSeconds, failureThreshold }: { periodSeconds: number; failureThreshold: number }) =>
  periodSeconds * failureThreshold;

describe('R7: the containers of a pod', () => {
  it('are an agent, and an engine that starts before it and stops after it', async () => {
    const { spec } = await pod(aks);
    expect(spec.containers.map(({ name }) => name)).toEqual(['agent']);
    expect(spec.initContainers.map(({ name, restartPolicy }) => [name, restartPolicy])).toEqual([
      ['engine', 'Always'],
      ['attestation', 'Always'],
    ]);
  });

  it.each([
    ['triton', aks, ['--http-address=127.0.0.1', '--grpc-address=127.0.0.1', '--metrics-address=127.0.0.1']],
    ['a speech server', eks, ['--host=127.0.0.1']],
  ])('keep the ports of %s inside the pod', async (_, values, args) => {
    const engine = container(await pod(values), 'engine');
    expect(engine.ports).toBeUndefined();
    expect(engine.args).toEqual(expect.arrayContaining(args));
  });

  it('come from the operator registry, by tag or digest', async () => {
    expect(container(await pod(aks), 'agent').image).toBe(
      `registry.example.com/auricle/agent@sha256:${'0'.repeat(64)}`,
    );
    const embedded = await pod(example('embedded'), { engine: { image: { tag: '1.2' } } });
    expect(container(embedded, 'engine').image).toBe('registry.example.com/auricle/engine:1.2');
  });

  it('run without privileges, on a read-only root', async () => {
    const { spec } = await pod(aks);
    for (const { name, securityContext } of [...spec.containers, ...spec.initContainers]) {
      expect(securityContext, name).toEqual({
        ...{ allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, runAsNonRoot: true },
        ...{ runAsUser: 10001, runAsGroup: 10001, capabilities: { drop: ['ALL'] } },
      });
    }
    expect(spec.automountServiceAccountToken).toBe(false);
  });

  it('share a folder of models that the agent alone writes', async () => {
    const made = await pod(aks);
    const mountOf = (name: string) => container(made, name).volumeMounts.find((one) => one.name === 'engine-models');
    expect(mountOf('agent')).toEqual({ name: 'engine-models', mountPath: '/models/engine' });
    expect(mountOf('engine')).toEqual({ name: 'engine-models', mountPath: '/models/engine', readOnly: true });
    expect(made.spec.volumes).toContainEqual({ name: 'engine-models', emptyDir: { sizeLimit: '36Gi' } });
  });

  it('L3: share a store of verified models with the agents of their node', async () => {
    const made = await pod(aks, { models: { hostPath: '/var/lib/models' } });
    const agent = container(made, 'agent');
    expect(environmentOf(agent).AURICLE_MODEL_STORE).toBe('/models/store');
    expect(agent.volumeMounts).toContainEqual({ name: 'store', mountPath: '/models/store' });
    expect(made.spec.volumes).toContainEqual({
      name: 'store',
      hostPath: { path: '/var/lib/models', type: 'Directory' },
    });
  });

  it('have secrets as files by reference, and none as a variable', async () => {
    const made = await pod(aks, { engine: { keySecret: 'key' } });
    const secrets = made.spec.volumes.flatMap(({ secret }) => (secret as { secretName: string })?.secretName ?? []);
    expect(secrets).toEqual(['pool-token', 'pools-tls', 'key']);
    expect(JSON.stringify(made)).not.toMatch(/secretKeyRef/);
  });
});

describe('the life of a pod', () => {
  it('has as long for its start as its models take', async () => {
    const { startupProbe, readinessProbe, livenessProbe } = container(await pod(aks), 'agent');
    expect(seconds(startupProbe)).toBe(120 + 12 * 30);
    expect([startupProbe, readinessProbe].map(({ httpGet }) => httpGet)).toEqual([
      { path: '/readyz', port: 'agent', scheme: 'HTTPS' },
      { path: '/readyz', port: 'agent', scheme: 'HTTPS' },
    ]);
    expect(livenessProbe.httpGet?.path).toBe('/healthz');
  });

  it.each([{ drain: { seconds: 900 } }, { scaling: { streamMinutes: 15 } }])(
    'ends after the length of a stream and the time to stop: %j',
    async (over) => {
      const made = await pod(aks, over);
      expect(environmentOf(container(made, 'agent')).AURICLE_DRAIN_MS).toBe('900000');
      expect(made.spec.terminationGracePeriodSeconds).toBe(945);
    },
  );

  it('leaves its volume, which may hold audit events, to the operator', async () => {
    expect(only(await render(aks), 'StatefulSet').spec).toMatchObject({
      persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Retain', whenScaled: 'Retain' },
      volumeClaimTemplates: [{ metadata: { name: 'state' }, spec: { resources: { requests: { storage: '100Gi' } } } }],
    });
  });

  it('is not rolled by a new version of the chart', async () => {
    const { metadata } = await pod(aks);
    expect(Object.keys(metadata.labels)).not.toContain('helm.sh/chart');
  });

  it('is protected from drains of two nodes at once', async () => {
    expect(only(await render(aks), 'PodDisruptionBudget').spec).toMatchObject({
      ...{ maxUnavailable: 1, unhealthyPodEvictionPolicy: 'AlwaysAllow' },
      selector: { matchLabels: { 'app.kubernetes.io/instance': 'speech' } },
    });
  });
});

describe('L2, A23: the accelerator', () => {
  it.each([
    [1, 1, 1],
    [4, 2, 8],
  ])('gives a pod %i × %i GPUs', async (tensorParallel, pipelineParallel, count) => {
    const made = container(await pod(aks, { accelerator: { tensorParallel, pipelineParallel } }), 'engine');
    expect(gpus(made)).toBe(count);
    expect(environmentOf(made).NCCL_ALGO).toBe(count > 1 ? 'Tree' : undefined);
  });

  it('selects nodes by product and tolerates the taints of its cloud', async () => {
    const { spec } = await pod(eks);
    expect(JSON.stringify(spec.affinity)).toContain(
      '"nvidia.com/gpu.product","operator":"In","values":["NVIDIA-L40S"]',
    );
    expect(spec.tolerations).toEqual([{ key: 'nvidia.com/gpu', operator: 'Exists', effect: 'NoSchedule' }]);
  });

  it('is absent from CPU pools', async () => {
    const made = await pod(example('embedded'));
    expect(gpus(container(made, 'engine'))).toBeUndefined();
    expect(made.spec.tolerations).toBeUndefined();
  });

  it('is a claim instead of a resource with dynamic resource allocation', async () => {
    const manifests = await render(merge(aks, { accelerator: { mode: 'dra', tensorParallel: 2 } }));
    const engine = container(podOf(manifests), 'engine');
    expect(gpus(engine)).toBeUndefined();
    expect(engine.resources.claims).toEqual([{ name: 'gpus' }]);
    expect(podOf(manifests).spec.resourceClaims).toEqual([
      { name: 'gpus', resourceClaimTemplateName: 'aks-westeurope-gpus' },
    ]);
    expect(only(manifests, 'ResourceClaimTemplate').spec).toEqual({
      spec: { devices: { requests: [{ name: 'gpus', exactly: { deviceClassName: 'gpu.nvidia.com', count: 2 } }] } },
    });
  });
});

it('installs further objects, texts as templates', async () => {
  const text = 'apiVersion: v1\nkind: Secret\nmetadata: { name: "{{ .Release.Name }}-more" }';
  const object = parse(text.replace('{{ .Release.Name }}', 'other'));
  const manifests = await render({ ...aks, extraObjects: [text, object] });
  const names = manifests.filter(({ kind }) => kind === 'Secret').map(({ metadata }) => metadata.name);
  expect(names).toEqual(['speech-more', 'other-more']);
});
