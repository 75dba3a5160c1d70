// Routing in a zone of 500 agents: `pick` beside a plain two-choice, and one second of a roster. Options: `--agents=500`.
import { performance } from 'node:perf_hooks';
import { deserialize, serialize } from 'node:v8';
import { CompactSign, generateKeyPair } from 'jose';
import { type Agent, readMessage } from '../../edge/routing/agent-link.ts';
import { agentFinished, agentStarted, knownAgents } from '../../edge/routing/agent-memory.ts';
import { explain } from '../../edge/routing/decision.ts';
import { pick, type RouteRequest } from '../../edge/routing/pick.ts';
import type { RosterEntry, Snapshot } from '../../shared/pool/heartbeat.ts';
import { classes } from '../../shared/tenant/claims.ts';
import { randomOf } from '../fake/random.ts';
import { median } from './median.ts';
import type { Bench } from './run.ts';

const ROUNDS = 9;
const REQUESTS = 400;
const SNAPSHOTS = 20;
const start = Date.UTC(2026, 10, 20, 12);

/** An agent of a fleet of four devices and three regions, with some load. */
function entryOf(at: number, random: () => number): RosterEntry {
  const device = ['h100', 'a100', 'l4', 'cpu'][at % 4] as string;
  const places = [
    { latitude: 52, longitude: 5 },
    { latitude: 60, longitude: 25 },
    { latitude: 48, longitude: 2 },
  ];
  const names = ['reference-en', 'reference-es', 'voice-en'] as const;
  const agent = `agent-${at}`;
  const queued = Object.fromEntries(classes.map((name) => [name, Math.floor(random() * 4)]));
  return {
    description: {
      ...{ agent, pool: `pool-${at % 50}`, zone: 'eu', region: `region-${at % 3}`, platform: 'AKS' },
      ...{ endpoint: `https://${agent}.test`, accelerator: device === 'cpu' ? 'cpu' : 'gpu', device },
      ...{ price: 1 + (at % 7), slots: 4 + (at % 13), suites: [5] },
      location: places[at % 3] as { latitude: number; longitude: number },
      models: names.map((name) => ({
        ...{ name, task: name === 'voice-en' ? 'synthesize' : 'transcribe', languages: ['en'], live: true },
        ...{ revision: `sha256:${'0'.repeat(64)}`, precision: 'int8', stage: 'full', loaded: 1_700_000_000 },
      })),
    },
    attestation: 'a'.repeat(1_200),
    load: {
      ...{ busy: Math.floor(random() * 8), streams: at % 9, queued: queued as RosterEntry['load']['queued'] },
      ...{ serviceMs: 50 + random() * 100, draining: false, engineReady: true, power: random() },
    },
    heard: start - Math.floor(random() * 1_000),
  };
}

const request = (name: (typeof classes)[number], at: number): RouteRequest => ({
  ...{ tenant: `tenant-${at % 10}`, session: `session-${at}`, task: 'transcribe', model: 'reference-en' },
  ...{ zones: ['eu', 'us'], suite: 5, class: name, place: { latitude: 50, longitude: 8 } },
});

/** Plain two-choice: agents of zone and model, two at random, the one with fewer requests a slot. */
function twoChoice({ entries, zone }: Snapshot, { model, zones }: RouteRequest, random: () => number) {
  const able = entries.filter(
    ({ description, load }) =>
      zones.includes(zone) &&
      !load.draining &&
      load.engineReady &&
      description.models.some(({ name, task }) => name === model && task === 'transcribe'),
  );
  const draw = () => able[Math.floor(random() * able.length)] as RosterEntry;
  const load = ({ description, load: { busy, queued } }: RosterEntry) =>
    (busy + classes.reduce((sum, name) => sum + queued[name], 0)) / description.slots;
  const [one, other] = [draw(), draw()];
  return load(one) <= load(other) ? one : other;
}

export async function measure(options: string[]): Promise<Bench> {
  const agents = Number(options.find((one) => one.startsWith('--agents='))?.split('=')[1] ?? 500);
  const random = randomOf(1);
  const entries = Array.from({ length: agents }, (_, at) => entryOf(at, random));
  const snapshotAt = (at: number): Snapshot => ({
    zone: 'eu',
    at,
    began: 0,
    entries: entries.map((one) => ({ ...one })),
  });
  for (const { description } of entries) {
    agentStarted(description.agent);
    agentFinished(description.agent, 'healthy', 50 + random() * 100, start);
  }
  const rounds = { ours: [] as number[], plain: [] as number[], explained: [] as number[] };
  for (let round = 0; round < ROUNDS; round++) {
    // Snapshots are new each second: their first requests pay for the constraints.
    const snapshots = Array.from({ length: SNAPSHOTS }, (_, at) => snapshotAt(start + at));
    const each = (act: (snapshot: Snapshot, asked: RouteRequest) => unknown): number => {
      const began = performance.now();
      for (const snapshot of snapshots)
        for (let at = 0; at < REQUESTS; at++) act(snapshot, request(classes[at % classes.length] ?? 'default', at));
      return ((performance.now() - began) * 1_000) / (SNAPSHOTS * REQUESTS);
    };
    const moment = (snapshot: Snapshot) => ({ snapshots: [snapshot], memory: knownAgents, now: start + 500, random });
    rounds.ours.push(each((snapshot, asked) => pick(asked, moment(snapshot))));
    rounds.plain.push(each((snapshot, asked) => twoChoice(snapshot, asked, random)));
    const began = performance.now();
    for (let at = 0; at < 100; at++) explain(request('default', at), moment(snapshots[at % SNAPSHOTS] as Snapshot));
    rounds.explained.push((performance.now() - began) * 10);
  }
  const roster = await rosterSecond(entries);
  const [ours, plain, explained] = [median(rounds.ours), median(rounds.plain), median(rounds.explained)];
  return {
    table: [
      { what: 'pick', us: Number(ours.toFixed(1)) },
      { what: 'plain two-choice over the same entries', us: Number(plain.toFixed(1)) },
      { what: 'an explanation', us: Number(explained.toFixed(0)) },
      { what: 'reports of a second, verified', us: Number((roster.reports * 1_000).toFixed(0)) },
      { what: 'a snapshot, serialised and read', us: Number((roster.snapshot * 1_000).toFixed(0)) },
    ],
    figures: {
      pick_us: Number(ours.toFixed(1)),
      pick_vs_two_choice: Number((ours / plain).toFixed(2)),
      explain_us: Number(explained.toFixed(0)),
      roster_second_ms: Number(roster.reports.toFixed(0)),
      snapshot_ms: Number(roster.snapshot.toFixed(1)),
      snapshot_kb: Number((roster.bytes / 1_000).toFixed(0)),
    },
    how: `A zone of ${agents} agents in 50 pools, four devices and three regions, all remembered by the isolate; ${SNAPSHOTS} snapshots × ${REQUESTS} requests of four classes, ${ROUNDS} rounds, medians. pick: both attempts of a request, constraints included, which are cached until the next snapshot. plain two-choice: filters by zone, model and readiness, draws two, takes the one with fewer requests a slot. roster_second: ${agents} signed reports parsed and verified (ES256) in Node; a Durable Object does the same in workerd. snapshot: structured clone of all entries, as a call from an isolate costs each second.`,
  };
}

/** Measures what a roster does in a second: a report of each agent, and a snapshot. */
async function rosterSecond(entries: readonly RosterEntry[]) {
  const { privateKey, publicKey } = await generateKeyPair('ES256');
  const now = Date.now();
  const boot = 'b'.repeat(16);
  const messages = await Promise.all(
    entries.map(async ({ description, load, attestation }) => {
      const message = { v: 1, type: 'report', boot, seq: 2, load, release: 1, at: now };
      const text = await new CompactSign(Buffer.from(JSON.stringify(message)))
        .setProtectedHeader({ alg: 'ES256', kid: description.agent })
        .sign(privateKey);
      const times = { issued: 0, expires: now, opened: now, heard: now };
      const agent: Agent = { description, attestation, signKey: publicKey, boot, seq: 1, earlier: [], load, ...times };
      return { text, agent };
    }),
  );
  const rounds = { reports: [] as number[], snapshot: [] as number[] };
  let bytes = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const began = performance.now();
    for (const { text, agent } of messages) {
      const read = await readMessage(text, agent, now);
      if (!read.ok) throw new Error(read.refusal.detail);
    }
    const verified = performance.now();
    const buffer = serialize(entries);
    deserialize(buffer);
    bytes = buffer.byteLength;
    rounds.reports.push(verified - began);
    rounds.snapshot.push(performance.now() - verified);
  }
  return { reports: median(rounds.reports), snapshot: median(rounds.snapshot), bytes };
}
