import { expect, it } from 'vitest';
import { direct, example, type Manifest, merge, refusal, render } from './helm.ts';

const aks = example('aks-triton');
const values = merge(aks, { directGrpc: direct });
const ports = ['speech-grpc', 'http', 'grpc', 'metrics'];

async function manifest(kind: string): Promise<Manifest['spec']> {
  const found = (await render(values)).find(
    (one) => one.kind === kind && one.metadata.name === 'aks-westeurope-direct',
  );
  return found?.spec;
}
const named = (names: readonly string[]) => names.map((name) => expect.objectContaining({ name }));

it('R8, R9: a headless Service and a ServiceMonitor name the ports of the container', async () => {
  const container = { ports: expect.arrayContaining(named(ports)) };
  expect(await manifest('Deployment')).toMatchObject({ template: { spec: { containers: [container] } } });
  expect(await manifest('Service')).toMatchObject({
    clusterIP: 'None',
    ports: expect.arrayContaining([
      { name: 'speech-grpc', port: 50_051, targetPort: 'speech-grpc' },
      { name: 'http', port: 8000, targetPort: 'http' },
      { name: 'grpc', port: 8001, targetPort: 'grpc' },
      { name: 'metrics', port: 8002, targetPort: 'metrics' },
    ]),
  });
  expect(await manifest('ServiceMonitor')).toMatchObject({ endpoints: [{ port: 'metrics', interval: '15s' }] });
});

it('R12: Traefik balances gRPC over h2c to port 50051', async () => {
  expect(await manifest('IngressRoute')).toEqual({
    entryPoints: ['grpc'],
    routes: [
      {
        kind: 'Rule',
        match: 'Host(`grpc.example.com`)',
        services: [{ name: 'aks-westeurope-direct', port: 50_051, scheme: 'h2c', strategy: 'p2c' }],
      },
    ],
    tls: { secretName: 'grpc-tls' },
  });
});

it('R11: an HPA follows the average time in the queue', async () => {
  const metric = { metric: { name: 'avg_time_queue_ms' }, target: { type: 'AverageValue', averageValue: '500m' } };
  expect(await manifest('HorizontalPodAutoscaler')).toMatchObject({
    ...{ minReplicas: 1, maxReplicas: 3, scaleTargetRef: { kind: 'Deployment' } },
    metrics: [{ type: 'Pods', pods: metric }],
  });
});

it('opens gRPC to gateways and metrics to monitoring only', async () => {
  const port = (name: string) => [{ port: name, protocol: 'TCP' }];
  expect(await manifest('NetworkPolicy')).toMatchObject({
    policyTypes: ['Ingress', 'Egress'],
    ingress: [{ ports: port('metrics') }, { ports: port('speech-grpc') }],
  });
});

it('leaves the pool as it is', async () => {
  const others = (await render(values)).filter(({ metadata }) => metadata.name !== 'aks-westeurope-direct');
  expect(others).toEqual(await render(aks));
});

it('is refused without an image', async () => {
  expect(await refusal(merge(values, { directGrpc: { image: '' } }))).toMatch(/directGrpc.image is required/);
});
