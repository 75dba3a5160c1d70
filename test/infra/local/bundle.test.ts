import { existsSync } from 'node:fs';
import { expect, it } from 'vitest';
import { bundledEntry } from '../../../infra/local/bundle-entry.ts';
import { makeIdentity } from '../../../infra/local/identity/make.ts';
import { planParts, portNamesOf } from '../../../infra/local/plan.ts';
import { pools } from '../../../infra/local/pools.ts';
import { folderForTest } from './folder.ts';

/** The bundle of a changed source takes seconds of processor time. */
const BUNDLE_MS_MAX = 60_000;

it(
  'C10 the bundle holds every part, the command line and what they fork',
  async () => {
    const state = folderForTest();
    const identity = await makeIdentity(state, [...pools]);
    const ports = Object.fromEntries(portNamesOf(pools).map((name, index) => [name, index]));
    const parts = planParts({ state, edgePort: 1, ports, identity, pools }).map(({ entry }) => entry);
    const forked = ['infra/pool/agent/stream/worker.ts', 'infra/pool/engine/run/instance-thread.ts'];
    const entries = [...parts, ...forked, 'infra/cli/main.ts', 'infra/local/main.ts', 'functions/triggers.ts'];
    expect(entries.filter((entry) => !existsSync(bundledEntry(entry)))).toEqual([]);
  },
  BUNDLE_MS_MAX,
);
