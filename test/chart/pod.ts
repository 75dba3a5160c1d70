// The pod of a rendered StatefulSet. Members are those that tests look at.
import { type Manifest, only } from './helm.ts';

interface Variable {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: { readonly fieldRef?: { readonly fieldPath: string } };
}
interface Probe {
  readonly periodSeconds: number;
  readonly failureThreshold: number;
  readonly httpGet?: { readonly path: string; readonly scheme: string };
  readonly exec?: { readonly command: readonly string[] };
}
export interface Container {
  readonly name: string;
  readonly image: string;
  readonly restartPolicy?: string;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly env: readonly Variable[];
  readonly ports?: readonly unknown[];
  readonly startupProbe: Probe;
  readonly readinessProbe: Probe;
  readonly livenessProbe: Probe;
  readonly securityContext: unknown;
  readonly resources: {
    readonly limits: Readonly<Record<string, unknown>>;
    readonly claims?: readonly unknown[];
  };
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string; readonly readOnly?: boolean }[];
}
export interface Pod {
  readonly metadata: { readonly labels: Readonly<Record<string, string>> };
  readonly spec: {
    readonly initContainers: readonly Container[];
    readonly containers: readonly Container[];
    readonly volumes: readonly { readonly name: string; readonly [kind: string]: unknown }[];
    readonly terminationGracePeriodSeconds: number;
    readonly [key: string]: unknown;
  };
}

export const podOf = (manifests: readonly Manifest[]): Pod =>
  (only(manifests, 'StatefulSet').spec as { readonly template: Pod }).template;

export function container({ spec }: Pod, name: string): Container {
  const found = [...spec.initContainers, ...spec.containers].find((one) => one.name === name);
  if (!found) throw new Error(`no container ${name}`);
  return found;
}

/** Returns the variables of a container as the kubelet of the first pod sets them. */
export function environmentOf({ env }: Container): Record<string, string> {
  const values: Record<string, string> = {};
  for (const { name, value = '', valueFrom } of env) {
    const isName = valueFrom?.fieldRef?.fieldPath === 'metadata.name';
    values[name] = isName ? 'POD' : value.replace(/\$\((\w+)\)/g, (_, other: string) => values[other] ?? '');
  }
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, value.replace('POD', `${values.AURICLE_POOL}-0`)]),
  );
}
