import fc from 'fast-check';
import type { RouteRequest } from '../../../edge/routing/route.ts';
import type { RosterEntry, Snapshot } from '../../../shared/pool/heartbeat.ts';
import { classes } from '../../../shared/tenant/claims.ts';

export const now = Date.UTC(2026, 10, 20, 12);

type Description = RosterEntry['description'];
type Model = Description['models'][number];

export const model = (change: Partial<Model> = {}): Model => ({
  name: 'reference-en',
  task: 'transcribe',
  languages: ['en'],
  revision: `sha256:${'0'.repeat(64)}`,
  precision: 'int8',
  stage: 'full',
  loaded: now / 1000,
  ...change,
});

/** A healthy agent `<zone>-<number>` with one model; `change` is laid over its description, `load` over its load. */
export function agent(
  name: string,
  change: Partial<Description> = {},
  load: Partial<RosterEntry['load']> = {},
  heard = now,
): RosterEntry {
  return {
    description: {
      agent: name,
      pool: `pool-${name}`,
      zone: 'eu',
      region: 'westeurope',
      platform: 'AKS',
      endpoint: `http://${name}:8000`,
      accelerator: 'gpu',
      slots: 4,
      suites: [5],
      models: [model()],
      ...change,
    },
    attestation: 'token',
    load: {
      busy: 0,
      queued: { realtime: 0, interactive: 0, default: 0, batch: 0 },
      serviceMs: 100,
      draining: false,
      engineReady: true,
      ...load,
    },
    heard,
  };
}

export const snapshot = (entries: readonly RosterEntry[], zone = 'eu', at = now): Snapshot => ({
  zone,
  at,
  began: 0,
  entries,
});

export const request = (change: Partial<RouteRequest> = {}): RouteRequest => ({
  tenant: 'tenant',
  session: 'session',
  task: 'transcribe',
  model: 'reference-en',
  zones: ['eu'],
  suite: 5,
  class: 'default',
  ...change,
});

const zones = ['eu', 'us', 'cn'];
const names = ['reference-en', 'reference-zh'];
const counts = fc.nat({ max: 40 });

const anyModel = fc.record({
  name: fc.constantFrom(...names),
  task: fc.constantFrom('transcribe' as const, 'synthesize' as const),
  languages: fc.subarray(['en', 'en-US', 'zh', 'de'], { minLength: 1 }),
  live: fc.boolean(),
  stage: fc.constantFrom(
    ...(['develop-verify', 'grey', 'canary', 'full', 'full', 'full', 'retired'] satisfies Model['stage'][]),
  ),
});

const anyEntry = fc
  .record({
    zone: fc.constantFrom(...zones),
    pool: fc.constantFrom('a', 'b', 'c'),
    accelerator: fc.constantFrom('gpu' as const, 'cpu' as const),
    device: fc.constantFrom('h100', 'l4', 'other', undefined),
    price: fc.constantFrom(0, 3, undefined),
    location: fc.constantFrom({ latitude: 52, longitude: 5 }, { latitude: 22, longitude: 114 }, undefined),
    slots: fc.integer({ min: 1, max: 16 }),
    suites: fc.subarray([5, 0xf001], { minLength: 1 }),
    models: fc.array(anyModel, { maxLength: 3 }),
    load: fc.record({
      busy: counts,
      queued: fc.record({ realtime: counts, interactive: counts, default: counts, batch: counts }),
      serviceMs: fc.nat({ max: 2000 }),
      draining: fc.boolean(),
      engineReady: fc.boolean(),
      power: fc.constantFrom(0.5, 0.9, undefined),
      degraded: fc.constantFrom(0, 2, undefined),
    }),
    silent: fc.nat({ max: 12_000 }),
    listed: fc.constantFrom(...zones, undefined, undefined, undefined),
  })
  .map(({ load, silent, models, listed, ...rest }) => ({ load, silent, models: models.map(model), listed, rest }));

/** Fleets of every kind, with agents that a roster of another zone lists by mistake. */
export const anyFleet = fc.array(anyEntry, { maxLength: 24 }).map((rows) => {
  const entries = rows.map(({ load, silent, models, listed, rest }, at) => ({
    entry: agent(`agent-${at}`, { ...rest, models }, load, now - silent),
    in: listed ?? rest.zone,
  }));
  return zones.map((zone) =>
    snapshot(
      entries.filter((row) => row.in === zone).map((row) => row.entry),
      zone,
    ),
  );
});

export const anyRequest = fc.record({
  tenant: fc.constantFrom('one', 'two'),
  session: fc.string(),
  task: fc.constantFrom('transcribe' as const, 'synthesize' as const),
  model: fc.constantFrom(...names),
  language: fc.constantFrom(undefined, 'auto', 'en', 'en-GB', 'zh', 'fr'),
  zones: fc.subarray(zones, { minLength: 1 }),
  suite: fc.constantFrom(5, 0xf001),
  class: fc.constantFrom(...classes),
  realtime: fc.boolean(),
  live: fc.boolean(),
  place: fc.constantFrom({ latitude: 40, longitude: -74 }, undefined),
  canaryShare: fc.constantFrom(0, 0.5, 1),
  exclude: fc.subarray(['agent-0', 'agent-1', 'agent-2']).map((agents) => new Set(agents)),
});
