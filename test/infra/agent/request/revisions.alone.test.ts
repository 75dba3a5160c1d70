// An agent that serves stable and canary of one name together.
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { listModels } from '../../../../infra/pool/agent/identity/listed-models.ts';
import { LiveBook } from '../../../../infra/pool/agent/live-counts/book.ts';
import { newTally } from '../../../../infra/pool/agent/live-counts/tally.ts';
import { findRevision } from '../../../../infra/pool/agent/models/find-revision.ts';
import type { ServedModel } from '../../../../infra/pool/agent/models/served-model.ts';
import { tiers } from '../../../../shared/pool/description.ts';
import type { Part } from '../../../../shared/registry/release.ts';
import { ok } from '../../../../shared/result.ts';
import { askShort } from '../../../fake/edge.ts';
import { audioForm, joinSamples, multipart, silence, voice, wavFile } from '../fixtures.ts';
import { testDescription } from '../start-agent.ts';
import { linear16, liveModel, type StreamBench, startStreamBench } from '../stream/start-stream.ts';

vi.setConfig({ testTimeout: 40_000 });

const [A, B, C] = ['a', 'b', 'c'].map((digit) => `sha256:${digit.repeat(64)}`) as [string, string, string];
const suffixOf = (revision: string) => revision.slice('sha256:'.length).slice(0, 12);

/** The test model in a revision, with names of its own at the engine. */
function modelOf(revision: string): ServedModel {
  const made = liveModel();
  const engineModel = `test-en.${suffixOf(revision)}`;
  return {
    ...made,
    engineModel,
    description: { ...testDescription, revision },
    ...(made.recogniser && { recogniser: { ...made.recogniser, model: engineModel } }),
    ...(made.live && { live: { ...made.live, model: `test-en-stream.${suffixOf(revision)}` } }),
  };
}

let bench: StreamBench;
beforeAll(async () => {
  bench = await startStreamBench({}, { models: [modelOf(A), modelOf(B)] });
  bench.sequences.say = (model) => (model.endsWith(suffixOf(A)) ? 'stable' : 'canary');
});
afterAll(() => bench.stop());

const sound = joinSamples(silence(0.5), voice(1), silence(1));

describe('A16 two revisions of a name at one agent', () => {
  it.each([
    [A, 'stable'],
    [B, 'canary'],
    [undefined, 'stable'],
  ])('a recording is served by the revision of its facts: %s', async (revision, text) => {
    const { events } = await askShort({
      ...bench.request(),
      claims: revision === undefined ? {} : { revision },
      body: audioForm(wavFile(sound)),
      contentType: multipart,
    });
    const expected = { model: 'test-en', revision: revision ?? A };
    expect(events[0]).toMatchObject({ type: 'ready', ...expected });
    expect(events.find(({ type }) => type === 'segment')).toMatchObject({ text });
    expect(events.at(-1)).toMatchObject({ type: 'final', ...expected });
  });

  it('streams of both go on side by side, each in its own sequences', async () => {
    const before = bench.sequences.requests.length;
    const links = await Promise.all([A, B].map((revision) => bench.dial({ claims: { revision } })));
    for (const link of links) await link.open();
    for (const link of links) await link.audio(linear16(sound));
    for (const link of links) await link.end();
    const finals = await Promise.all(links.map((link) => link.event('final')));
    expect(finals.map(({ revision, segments }) => [revision, segments])).toEqual([
      [A, 1],
      [B, 1],
    ]);
    expect(links.map((link) => link.all('ready')[0]?.revision)).toEqual([A, B]);
    const used = new Set(bench.sequences.requests.slice(before).map(({ model }) => model));
    expect([...used].sort()).toEqual([A, B].map((one) => `test-en-stream.${suffixOf(one)}`));
  });

  it('C5 refuses a revision that it does not serve as misdirected', async () => {
    const claims = { revision: C };
    const body = audioForm(wavFile(sound));
    const answer = await askShort({ ...bench.request(), claims, body, contentType: multipart });
    expect([answer.status, answer.reason]).toEqual([421, 'misdirected']);
    await expect(bench.dial({ claims })).rejects.toMatchObject({ status: 421, reason: 'misdirected' });
    await expect(bench.dial({ claims: { revision: 'latest' } })).rejects.toMatchObject({ reason: 'ticket_invalid' });
  });
});

describe('C7 the revision of work that names none', () => {
  const found = (parts: Readonly<Record<string, Part | undefined>>, revision?: string) =>
    findRevision([A, B, C].map(modelOf), (one) => parts[one.revision], revision)?.description.revision;

  it('has the part full, else the former stable, never a withdrawn one', () => {
    expect(found({ [A]: 'canary', [B]: 'older', [C]: 'full' })).toBe(C);
    expect(found({ [A]: 'canary', [B]: 'older' })).toBe(B);
    expect(found({ [B]: 'grey' })).toBe(B);
    expect(found({})).toBeUndefined();
    expect(found({ [A]: 'canary', [C]: 'full' }, A)).toBe(A);
    expect(found({ [C]: 'full' }, A)).toBeUndefined();
  });

  it('A15 counts each recording for its own revision, and reports loaded ones', () => {
    const book = new LiveBook();
    const tally = { ...newTally(0), isRecording: true, totals: { seconds: 1, speechSeconds: 1 }, segments: 1 };
    for (const revision of [A, B, B]) book.ended({ ...testDescription, revision }, tally, ok(undefined), 1);
    const loaded = [A, B, C].map((revision) => ({ ...testDescription, revision }));
    const cold = { ...testDescription, revision: `sha256:${'d'.repeat(64)}`, tier: 'ssd' as const };
    expect(book.models([...loaded, cold])).toMatchObject([
      { revision: A, served: { streams: 1 } },
      { revision: B, served: { streams: 2 } },
      { revision: C },
    ]);
  });
});

it('A11 a report lists all loaded revisions, then the fastest tiers it has room for', () => {
  const known = ['blob', 'ram', undefined, 'ssd', undefined].flatMap((tier) =>
    Array.from({ length: 60 }, () => ({ ...testDescription, ...(tier !== undefined && { tier: tier as 'ram' }) })),
  );
  const listed = listModels(known).map(({ tier }) => tier);
  expect(listed.slice(0, 120)).toEqual(Array.from({ length: 120 }));
  expect(listed.length).toBeLessThan(known.length);
  const ranks = listed.slice(120).map((tier) => tiers.indexOf(tier ?? 'ram'));
  expect([...ranks].sort()).toEqual(ranks);
  expect(listModels(known.slice(0, 61))).toHaveLength(61);
});
