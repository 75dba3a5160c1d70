// Names for models: their gate, their log and their way into the release map.
import { describe, expect, it } from 'vitest';
import type { ModelContext } from '../../../functions/registry/model-context.ts';
import { onNames, onSetName } from '../../../functions/registry/on-models.ts';
import { publishRelease } from '../../../functions/registry/publish-release.ts';
import { decideName } from '../../../functions/registry/set-name.ts';
import type { EventDraft } from '../../../shared/audit/event.ts';
import { keyOfName, modelNamed, NAMES_LOG, NAMES_MAX } from '../../../shared/registry/names.ts';
import { newRegistry, type Registry } from '../../../shared/registry/registry.ts';
import type { ReleaseMap } from '../../../shared/registry/release.ts';
import type { Standing } from '../../../shared/registry/stage.ts';
import { ok } from '../../../shared/result.ts';
import { ModelBlobs } from '../../fake/model-blobs.ts';
import { RowsWithFiles } from '../../fake/rows-with-files.ts';
import { makeCallers } from '../callers.ts';
import { askModels } from './ask-models.ts';

const fresh = newRegistry(NAMES_LOG);
const named = (name: string, model: string, many = 1): Registry => ({
  ...fresh,
  names: Object.fromEntries(
    Array.from({ length: many }, (_, at) => [at === 0 ? name : `${name}${at}`, { name, model, since: 1 }]),
  ),
});
const model = (stage: Standing['stage'] | undefined): Registry => ({
  ...newRegistry('m'),
  revisions: stage
    ? { [`sha256:${'a'.repeat(64)}`]: { author: 'a', registered: 1, standing: { stage }, since: 1 } }
    : {},
});
const unregistered = model(undefined);

/** Functions with stores in memory, and what they publish and report. */
async function openNames() {
  const now = Date.now();
  const callers = await makeCallers();
  const released: ReleaseMap[] = [];
  const told: EventDraft[] = [];
  const context: ModelContext = {
    rows: new RowsWithFiles(),
    blobs: new ModelBlobs(),
    signers: [],
    zone: 'eu',
    audit: {
      report: async (_zone, draft, id = '') => {
        told.push(draft);
        return ok({ id, producer: '', epoch: '', pseq: told.length });
      },
    },
    edge: { publish: async (map) => void released.push(map) },
    settings: callers.settings,
    log: () => {},
    now: () => now,
  };
  const set = (body: object) => askModels(callers, context, onSetName, { body });
  return { set, released, told, context, callers, now };
}

describe('U3 a name moves', () => {
  it.each([
    ['to a model without a log', fresh, { model: 'm' }, unregistered, unregistered, undefined],
    ['to a model with a revision past the gates', fresh, { model: 'm' }, unregistered, model('full'), undefined],
    ['to a model on trial', fresh, { model: 'm' }, unregistered, model('canary'), 'gate_closed'],
    ['that is a registered model', fresh, { model: 'm' }, model('full'), unregistered, 'gate_closed'],
    ['from the model it has', named('n', 'a'), { model: 'm', from: 'a' }, unregistered, unregistered, undefined],
    [
      'from a model it has no more',
      named('n', 'a'),
      { model: 'm', from: 'b' },
      unregistered,
      unregistered,
      'alias_moved',
    ],
    ['to nothing', named('n', 'a'), { from: 'a' }, unregistered, undefined, undefined],
    ['over the bound', named('x', 'a', NAMES_MAX), { model: 'm' }, unregistered, unregistered, 'gate_closed'],
  ])('%s', (_, known, move, own, target, reason) => {
    const decided = decideName(known, { name: 'n', ...move }, { own, target });
    expect(decided.ok ? undefined : decided.refusal.reason).toBe(reason);
  });

  it('into the release map and the audit log, and away again', async () => {
    const { set, released, told, context, callers, now } = await openNames();
    expect(await set({ name: 'Org/Whisper', model: 'm' })).toMatchObject({ status: 200, body: { model: 'm' } });
    expect(await set({ name: 'default', tenant: 'acme', model: 'm', reason: 'theirs' })).toMatchObject({ status: 200 });
    expect(await set({ name: 'default', tenant: 'acme', model: 'm' })).toMatchObject({ status: 200 });
    expect(released.at(-1)).toMatchObject({ generation: 2, names: { 'Org/Whisper': 'm', 'acme default': 'm' } });
    expect(told).toMatchObject([
      { type: 'model.stage', model: 'm', alias: 'Org/Whisper', to: 'm' },
      { type: 'model.stage', model: 'm', alias: 'default', tenant: 'acme', reason: 'theirs' },
    ]);
    expect(await set({ name: 'Org/Whisper', from: 'm' })).toMatchObject({ status: 200, body: { name: 'Org/Whisper' } });
    expect((await publishRelease(context)).names).toEqual({ 'acme default': 'm' });
    const listed = await askModels(callers, context, onNames, {});
    expect(listed.body).toEqual({ names: [{ name: 'default', tenant: 'acme', model: 'm', since: now }] });
    expect(await askModels(callers, context, onNames, { operate: false })).toMatchObject({ status: 403 });
  });

  it('with others in one release, up to the first that is refused', async () => {
    const { set, released, told } = await openNames();
    expect(await set({ name: 'a', others: ['b', 'c'], model: 'm' })).toMatchObject({ body: { name: 'a', model: 'm' } });
    expect(released).toMatchObject([{ names: { a: 'm', b: 'm', c: 'm' } }]);
    expect(told).toMatchObject([{ alias: 'a' }, { alias: 'b' }, { alias: 'c' }]);
    expect(await set({ name: 'd', others: ['a', 'e'], model: 'n' })).toMatchObject({ status: 409 });
    expect(released.map(({ names }) => names?.d)).toEqual([undefined, 'n']);
  });

  it('finds a tenant’s own model first, and no member of an object', () => {
    const names = { default: 'a', [keyOfName('default', 'acme')]: 'b' };
    expect([modelNamed(names, 'default', 'acme'), modelNamed(names, 'default', 'other')]).toEqual(['b', 'a']);
    expect(modelNamed(names, 'constructor', 'acme')).toBeUndefined();
  });
});
