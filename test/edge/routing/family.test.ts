import { describe, expect, it } from 'vitest';
import { chooseMember, type FamilyRequest } from '../../../edge/routing/family.ts';
import { pick } from '../../../edge/routing/pick.ts';
import type { RosterEntry } from '../../../shared/pool/heartbeat.ts';
import { SNAPSHOT_STALE_MS } from '../../../shared/pool/limits.ts';
import { publicText } from '../../../shared/refusal.ts';
import { agent, model, now, request, snapshot } from './fleet.ts';

const member = (language: string, change: Parameters<typeof model>[0] = {}) =>
  model({ name: `reference-${language}`, family: 'reference', languages: [language], live: true, ...change });
const detector = model({ name: 'language-id', task: 'infer', detects: true, languages: ['en', 'es', 'zh'] });

const europe = agent('europe', { models: [member('en'), member('es'), detector] });
const asia = agent('asia', { zone: 'cn', models: [member('zh'), member('yue', { live: false })] });
const world = [snapshot([europe]), snapshot([asia], 'cn')];

function choose(change: Partial<FamilyRequest> = {}, snapshots = world) {
  const asked = { name: 'reference', language: undefined, allowed: ['*'], zones: ['eu', 'cn'], ...change };
  const chosen = chooseMember(asked, snapshots, now);
  return chosen.ok ? chosen.value : `${chosen.refusal.reason}: ${publicText(chosen.refusal)}`;
}
const onlyIn = (entry: RosterEntry) => [snapshot([entry])];

describe('C6 a family', () => {
  it.each([
    ['en', 'reference-en'],
    ['es-MX', 'reference-es'],
    ['zh', 'reference-zh'],
    ['yue', 'reference-yue'],
    ['zh-yue', 'reference-yue'],
    ['cmn', 'reference-zh'],
  ])('gives a request in %s its member %s', (language, name) => {
    expect(choose({ language })).toEqual({ model: name, language });
  });

  it('leaves models and unknown names as they are', () => {
    expect(choose({ name: 'reference-en' })).toEqual({ model: 'reference-en', language: undefined });
    expect(choose({ name: 'other', language: 'fr' })).toEqual({ model: 'other', language: 'fr' });
    const named = agent('named', { models: [model({ name: 'reference' }), member('es')] });
    expect(choose({ language: 'es' }, onlyIn(named))).toEqual({ model: 'reference', language: 'es' });
  });

  it('names its languages in the zones of the caller when none fits', () => {
    expect(choose({ language: 'fr', zones: ['eu'] })).toBe(
      'language_unknown: The model "reference" does not support the language "fr". It supports: en, es.',
    );
  });

  it('serves a stream by members that serve streams only', () => {
    expect(choose({ language: 'yue', live: true })).toContain('It supports: en, es, zh.');
  });

  it('serves by released revisions only', () => {
    const trial = agent('trial', { models: [member('es'), member('en', { stage: 'develop-verify' })] });
    expect(choose({ language: 'en' }, onlyIn(trial))).toContain('It supports: es.');
  });

  it('yields a member of another zone, which routing refuses', () => {
    const chosen = choose({ language: 'zh', zones: ['us'] });
    expect(chosen).toEqual({ model: 'reference-en', language: 'zh' });
    const picked = pick(request({ model: 'reference-en', zones: ['us'] }), {
      ...{ snapshots: world, memory: new Map(), now, random: () => 0 },
    });
    expect(picked).toMatchObject({ refusal: { reason: 'residency_mismatch' } });
  });
});

describe('C6 R3 a member whose agents take no work', () => {
  const detecting = agent('asia', { zone: 'cn', models: [member('zh'), detector] });
  const models = [member('en'), member('es'), member('zh', { name: 'a-zh' }), detector];
  const lost = [
    ['gone', {}, now - 600_000],
    ['draining', { draining: true }, now],
    ['joining', { engineReady: false }, now],
  ] as const;

  it.each(lost)('gives way to a healthy one: %s', (_, load, heard) => {
    const known = [snapshot([agent('europe', { models }, load, heard)]), snapshot([detecting], 'cn')];
    expect(choose({}, known)).toMatchObject({
      model: 'reference-zh',
      members: { en: 'reference-en', zh: 'reference-zh' },
    });
    expect(choose({ language: 'zh' }, known)).toEqual({ model: 'reference-zh', language: 'zh' });
    // No other member serves English: routing names the reason.
    expect(choose({ language: 'en', live: true }, known)).toEqual({ model: 'reference-en', language: 'en' });
  });

  it('gives way when its snapshot is stale', () => {
    const stale = { ...snapshot([agent('europe', { models })]), at: now - SNAPSHOT_STALE_MS - 1 };
    expect(choose({ language: 'zh' }, [stale, snapshot([detecting], 'cn')])).toMatchObject({ model: 'reference-zh' });
  });
});

describe('R3 the open language of a family', () => {
  it.each([undefined, '', 'auto'])('is detected for language=%s', (language) => {
    const members = { en: 'reference-en', es: 'reference-es', yue: 'reference-yue', zh: 'reference-zh' };
    const detection = { family: 'reference', members };
    expect(choose({ language })).toEqual({ model: 'reference-en', language: undefined, ...detection });
  });

  it('begins with a member that the token allows', () => {
    expect(choose({ allowed: ['es', 'zh'] })).toMatchObject({ model: 'reference-es', family: 'reference' });
  });

  it('is detected among those of the caller and of the token', () => {
    expect(choose({ languages: ['es-MX', 'zh', 'fr'] })).toMatchObject({
      model: 'reference-es',
      languages: ['es', 'zh'],
    });
    expect(choose({ languages: ['es', 'zh', 'en'], allowed: ['zh', 'yue', 'en'] })).toMatchObject({
      languages: ['en', 'zh'],
    });
    expect(choose({ languages: ['fr', 'de'] })).toContain('does not support the language "fr, de"');
    expect(choose({ languages: ['es', 'en'], language: 'zh' })).toBe(
      'language_needed: Send the field "language": the speech is in "zh", and the request is for es, en.',
    );
    expect(choose({ languages: ['es', 'en'], language: 'es' })).toEqual({ model: 'reference-es', language: 'es' });
  });

  it('needs no detection where the token allows one member', () => {
    expect(choose({ allowed: ['yue'] })).toEqual({ model: 'reference-yue', language: undefined });
    expect(choose({ allowed: ['fr'] })).toContain('language_forbidden');
  });

  it('is detected for a token of several languages of which one is served', () => {
    const detected = { family: 'reference', languages: ['en'] };
    expect(choose({ allowed: ['en', 'fr'] })).toMatchObject({ model: 'reference-en', ...detected });
  });

  it('is detected while members of other languages are away', () => {
    const rest = agent('rest', { models: [member('en'), detector] });
    expect(choose({}, onlyIn(rest))).toMatchObject({ model: 'reference-en', family: 'reference' });
    const alone = agent('alone', { models: [member('en')] });
    expect(choose({}, onlyIn(alone))).toEqual({ model: 'reference-en', language: undefined });
  });

  it('is requested from the client where no agent detects', () => {
    expect(choose({ zones: ['cn'] })).toBe(
      'language_needed: Send the field "language": "reference" has models for yue, zh, and no agent here detects languages.',
    );
  });

  it('goes to an agent that detects', () => {
    const bare = agent('bare', { models: [member('en')], slots: 400 });
    const routed = pick(request({ detects: true }), {
      ...{ snapshots: [snapshot([bare, europe])], memory: new Map(), now, random: () => 0 },
    });
    expect(routed.ok && routed.value.map(({ entry }) => entry.description.agent)).toEqual(['europe']);
    const free = pick(request(), {
      ...{ snapshots: [snapshot([bare, europe])], memory: new Map(), now, random: () => 0 },
    });
    expect(free.ok && free.value[0]?.entry.description.agent).toBe('bare');
  });
});
