// Places, pools and tenants of the simulated fleets. Everything in a description is what a real agent would announce.
import type { Place } from '../../edge/place.ts';
import { rttMs } from '../../edge/routing/distance.ts';
import type { AgentDescription, ModelDescription } from '../../shared/pool/description.ts';
import type { ModelRelease } from '../../shared/registry/release.ts';

export type Language = 'en' | 'es' | 'zh';

export interface PoolPlan {
  readonly description: AgentDescription;
  /** Mean milliseconds of a request on this device, one slot. */
  readonly meanMs: number;
}

/** A group of tenants with the same residency zones; its requests come from edges near them. */
export interface TenantGroup {
  readonly zones: readonly string[];
  readonly languages: readonly Language[];
  /** Share of the capacity of the fleet that it may use. */
  readonly share: number;
}

export interface Fleet {
  readonly pools: readonly PoolPlan[];
  readonly groups: readonly TenantGroup[];
}

const place = (latitude: number, longitude: number): Place => ({ latitude, longitude });

const regions: Readonly<Record<string, readonly [name: string, location: Place][]>> = {
  eu: [
    ['westeurope', place(52.4, 4.9)],
    ['francecentral', place(48.9, 2.4)],
    ['swedencentral', place(60.7, 17.1)],
  ],
  us: [
    ['eastus', place(39, -77.5)],
    ['us-west-2', place(45.8, -119.7)],
    ['centralus', place(41.6, -93.6)],
  ],
  apac: [
    ['japaneast', place(35.7, 139.8)],
    ['southeastasia', place(1.3, 103.8)],
    ['koreacentral', place(37.6, 127)],
  ],
};

/** Cities of edges by the zone they are near. */
export const cities: Readonly<Record<string, readonly Place[]>> = {
  eu: [place(52.3, 4.9), place(51.5, -0.1), place(40.4, -3.7), place(50.1, 8.7)],
  us: [place(40.7, -74), place(37.8, -122.4), place(41.9, -87.6), place(32.8, -96.8)],
  apac: [place(35.7, 139.7), place(1.4, 103.8), place(22.3, 114.2), place(-33.9, 151.2)],
};

/** Time of the first and the last mile, ms. */
const NEAR_MS = 4;

/** Returns the round trip between two places, ms. */
export const roundTripMs = (a: Place, b: Place): number => NEAR_MS + rttMs(a, b);

export const modelOf = (language: Language): string => `reference-${language}`;
export const STABLE = `sha256:${'0'.repeat(64)}`;
export const CANARY = `sha256:${'1'.repeat(64)}`;
export const release: ModelRelease = { stable: STABLE, canary: { revision: CANARY, share: 0.1 } };

const describeModel = (language: Language, revision: string): ModelDescription => ({
  name: modelOf(language),
  task: 'transcribe',
  languages: [language],
  revision,
  precision: 'fp32',
  stage: revision === STABLE ? 'full' : 'canary',
  loaded: 1_700_000_000,
  live: true,
});

/** Slots, device, US dollars an hour and mean service time of the kinds of pools; every six pools have these six. */
const kinds = [
  { slots: 16, accelerator: 'gpu', device: 'h100', price: 12, meanMs: 300 },
  { slots: 16, accelerator: 'gpu', device: 'h100', price: 12, meanMs: 300 },
  { slots: 8, accelerator: 'gpu', device: 'l4', price: 2, meanMs: 400 },
  { slots: 8, accelerator: 'gpu', device: 'l4', price: 2, meanMs: 400 },
  { slots: 4, accelerator: 'cpu', device: 'cpu', price: 0.8, meanMs: 500 },
  { slots: 4, accelerator: 'cpu', device: 'cpu', price: 0.8, meanMs: 500 },
] as const;

/** Live streams that an agent takes for each slot. */
const STREAMS_PER_SLOT = 64;

interface Site {
  readonly zone: string;
  /** Number of the region in its zone. */
  readonly at: number;
  readonly languages: readonly Language[];
}

function makePool(index: number, { zone, at, languages }: Site): PoolPlan {
  const { meanMs, ...kind } = kinds[index % kinds.length] as (typeof kinds)[number];
  const inZone = regions[zone] as NonNullable<(typeof regions)[string]>;
  const [region, location] = inZone[at % inZone.length] as (typeof inZone)[number];
  const name = `${zone}-${index}`;
  // Every fourth pool tries the new revision beside the stable one.
  const revisions = index % 4 === 0 ? [STABLE, CANARY] : [STABLE];
  return {
    meanMs,
    description: {
      ...kind,
      agent: `agent-${name}`,
      pool: name,
      zone,
      region,
      location,
      platform: zone === 'us' ? 'EKS' : 'AKS',
      endpoint: `https://${name}.example`,
      streams: kind.slots * STREAMS_PER_SLOT,
      suites: [5],
      models: languages.flatMap((language) => revisions.map((revision) => describeModel(language, revision))),
    },
  };
}

/** Six pools: three of a kind in `eu` and in `us`, all of them for English. */
const six: Fleet = {
  pools: kinds.map((_, index) => makePool(index, { zone: index % 2 ? 'us' : 'eu', at: 0, languages: ['en'] })),
  groups: [
    { zones: ['eu'], languages: ['en'], share: 0.4 },
    { zones: ['us'], languages: ['en'], share: 0.4 },
    { zones: ['eu', 'us'], languages: ['en'], share: 0.2 },
  ],
};

/** Sixty pools in three zones; English and Spanish in `eu` and `us`, Mandarin and English in `apac`. */
const sixty: Fleet = {
  pools: Array.from({ length: 60 }, (_, index) => {
    const zone = ['eu', 'us', 'eu', 'us', 'apac'][Math.floor(index / 6) % 5] as string;
    return makePool(index, { zone, at: index, languages: zone === 'apac' ? ['zh', 'en'] : ['en', 'es'] });
  }),
  groups: [
    { zones: ['eu'], languages: ['en', 'es'], share: 0.3 },
    { zones: ['us'], languages: ['en', 'es'], share: 0.3 },
    { zones: ['eu', 'us'], languages: ['en', 'es'], share: 0.2 },
    { zones: ['apac'], languages: ['zh', 'en'], share: 0.2 },
  ],
};

export const fleets = { six, sixty } as const;
