// Pools of the local stack. Accelerators, prices and places are doubles: every engine runs on this CPU, and the
// agents describe pools of a cloud, so that routing has something to choose between.

export interface Pool {
  readonly name: string;
  /** Residency zone. */
  readonly zone: string;
  readonly platform: 'AKS' | 'EKS';
  readonly region: string;
  readonly accelerator: 'gpu' | 'cpu';
  /** Accelerator that the pool stands for; absent for a processor. */
  readonly device?: string;
  /** Example of a list price, US dollars an hour. */
  readonly price: number;
  /** Degrees north and east. */
  readonly location: string;
  /** Models of the shipped repository that it serves. */
  readonly models: readonly string[];
}

/** Pools of a start without `--pools`. */
export const pools = [
  {
    ...{ name: 'aks-westeurope', zone: 'eu', platform: 'AKS', region: 'westeurope', location: '52.37,4.90' },
    ...{ accelerator: 'gpu', device: 'h100', price: 7 },
    models: ['reference-en', 'reference-en-stream', 'reference-es', 'language-id', 'voice-en'],
  },
  {
    ...{ name: 'eks-us-east-1', zone: 'us', platform: 'EKS', region: 'us-east-1', location: '38.95,-77.45' },
    ...{ accelerator: 'cpu', price: 0.4 },
    models: ['reference-en', 'reference-en-stream', 'language-id', 'voice-en'],
  },
] as const satisfies readonly Pool[];

export const allPools: readonly Pool[] = [
  ...pools,
  {
    ...{ name: 'aks-southeastasia', zone: 'apac', platform: 'AKS', region: 'southeastasia', location: '1.29,103.85' },
    ...{ accelerator: 'gpu', device: 'a100', price: 4, models: ['reference-zh', 'reference-yue', 'language-id'] },
  },
];

/** Returns the pools of names or zones with commas between them, or of `all`, in the order of the table. */
export function choosePools(text: string): readonly Pool[] | { readonly problem: string } {
  if (text === 'all') return allPools;
  const given = text.split(',');
  const unknown = given.filter((one) => !allPools.some(({ name, zone }) => one === name || one === zone));
  const known = allPools.map(({ name, zone }) => `${name} (${zone})`).join(', ');
  if (unknown.length > 0) return { problem: `--pools ${unknown.join(',')} is none of ${known} and all` };
  return allPools.filter(({ name, zone }) => given.includes(name) || given.includes(zone));
}
