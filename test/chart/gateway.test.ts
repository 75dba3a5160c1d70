import { describe, expect, it } from 'vitest';
import { example, type Manifest, merge, only, render, type Values } from './helm.ts';

const aks = example('aks-triton');
const pods = ['aks-westeurope-0', 'aks-westeurope-1', 'aks-westeurope-2'];
const kinds = ['gatewayApi', 'traefik', 'nginx', 'loadBalancer'];
const through = (kind: string, over: Values = {}) =>
  render(merge(merge(aks, { confidential: { enabled: false } }), merge({ gateway: { kind } }, over)));
const named = (manifests: readonly Manifest[], kind: string) => manifests.filter((one) => one.kind === kind);

describe.each(kinds)('L6: gateway %s', (kind) => {
  it('gives each pod a Service that selects this pod alone', async () => {
    const [headless, ...single] = named(await through(kind), 'Service').sort((a, b) =>
      a.metadata.name.localeCompare(b.metadata.name),
    );
    expect(headless?.spec).toMatchObject({ clusterIP: 'None', publishNotReadyAddresses: true });
    expect(single.map(({ metadata }) => metadata.name)).toEqual(pods);
    for (const { metadata, spec } of single) {
      expect(spec).toMatchObject({
        selector: { 'statefulset.kubernetes.io/pod-name': metadata.name, 'app.kubernetes.io/instance': 'speech' },
        publishNotReadyAddresses: true,
        ports: [{ port: 443, targetPort: 'agent' }],
      });
    }
  });
});

describe('L6: routes', () => {
  it('pass TLS of one host to one pod by the Gateway API', async () => {
    const manifests = await through('gatewayApi');
    const listener = { protocol: 'TLS', hostname: '*.pools.example.com', tls: { mode: 'Passthrough' } };
    expect(only(manifests, 'Gateway').spec).toMatchObject({ gatewayClassName: 'envoy', listeners: [listener] });
    expect(named(manifests, 'TLSRoute').map(({ spec }) => spec)).toEqual(
      pods.map((name) => ({
        parentRefs: [{ name: 'pools', namespace: 'pools' }],
        hostnames: [`${name}.pools.example.com`],
        rules: [{ backendRefs: [{ name, port: 443 }] }],
      })),
    );
  });

  it('join an existing Gateway', async () => {
    const manifests = await through('gatewayApi', { gateway: { className: '', namespace: 'edge' } });
    expect(named(manifests, 'Gateway')).toEqual([]);
    expect(named(manifests, 'TLSRoute')[0]?.spec).toMatchObject({ parentRefs: [{ name: 'pools', namespace: 'edge' }] });
  });

  it('pass TLS of one host to one pod by Traefik', async () => {
    expect(named(await through('traefik'), 'IngressRouteTCP').map(({ spec }) => spec)).toEqual(
      pods.map((name) => ({
        entryPoints: ['websecure'],
        routes: [{ match: `HostSNI(\`${name}.pools.example.com\`)`, services: [{ name, port: 443 }] }],
        tls: { passthrough: true },
      })),
    );
  });

  it('pass TLS of one host to one pod by NGINX', async () => {
    const ingresses = named(await through('nginx'), 'Ingress');
    expect(ingresses.map(({ metadata }) => metadata.annotations)).toEqual(
      pods.map(() => ({ 'nginx.ingress.kubernetes.io/ssl-passthrough': 'true' })),
    );
    expect(ingresses.map(({ spec }) => spec)).toMatchObject(
      pods.map((name) => ({
        rules: [{ host: `${name}.pools.example.com`, http: { paths: [{ backend: { service: { name } } }] } }],
      })),
    );
  });

  it.each([
    ['aks', 'service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout', '30'],
    [
      'eks',
      'service.beta.kubernetes.io/aws-load-balancer-listener-attributes.TCP-443',
      'tcp.idle_timeout.seconds=3600',
    ],
  ])('outlast a pause of a stream at balancers of %s', async (cloud, annotation, value) => {
    const single = named(await through('loadBalancer', { cloud }), 'Service').filter(({ spec }) =>
      JSON.stringify(spec).includes('LoadBalancer'),
    );
    expect(single).toHaveLength(3);
    for (const { metadata } of single) {
      expect(metadata.annotations).toMatchObject({
        'external-dns.alpha.kubernetes.io/hostname': `${metadata.name}.pools.example.com`,
        [annotation]: value,
      });
    }
  });

  it('exist for every pod up to maxReplicas', async () => {
    const manifests = await through('traefik', { scaling: { maxReplicas: 7 } });
    expect(named(manifests, 'IngressRouteTCP')).toHaveLength(7);
  });
});

describe('the network policy', () => {
  it('opens the port of the agent to gateway, monitoring and tests only', async () => {
    const { spec } = only(await through('traefik'), 'NetworkPolicy');
    const { ingress } = spec as { ingress: readonly { ports: unknown; from?: readonly unknown[] }[] };
    expect(ingress).toHaveLength(1);
    expect(ingress[0]?.ports).toEqual([{ protocol: 'TCP', port: 'agent' }]);
    expect(ingress[0]?.from).toHaveLength(3);
    expect(spec).toMatchObject({ policyTypes: ['Ingress', 'Egress'] });
  });

  it('opens that port to all addresses behind balancers', async () => {
    const { spec } = only(await through('loadBalancer'), 'NetworkPolicy');
    expect((spec as { ingress: unknown }).ingress).toEqual([{ ports: [{ protocol: 'TCP', port: 'agent' }] }]);
  });

  it('lets pods out to names and to https', async () => {
    const { spec } = only(await through('traefik'), 'NetworkPolicy');
    const { egress } = spec as { egress: readonly { ports: readonly { port: number }[] }[] };
    expect(egress.flatMap(({ ports }) => ports.map(({ port }) => port))).toEqual([53, 53, 443]);
  });

  it('lets pods of EKS out to the agent of their identity', async () => {
    const { spec } = only(await through('traefik', { cloud: 'eks' }), 'NetworkPolicy');
    expect(JSON.stringify(spec)).toContain('169.254.170.23/32');
  });
});

it('R9, L4: a PodMonitor scrapes the page of the agent alone', async () => {
  const monitor = only(await through('traefik', { podMonitor: { labels: { release: 'prometheus' } } }), 'PodMonitor');
  expect(monitor.metadata.labels).toMatchObject({ release: 'prometheus' });
  expect(monitor.spec).toMatchObject({
    selector: { matchLabels: { 'app.kubernetes.io/name': 'auricle-pool', 'app.kubernetes.io/instance': 'speech' } },
    podMetricsEndpoints: [{ port: 'agent', path: '/metrics', interval: '15s', scheme: 'https' }],
  });
});
