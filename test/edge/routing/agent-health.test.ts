import { describe, expect, it } from 'vitest';
import { healthOf, takesWork } from '../../../edge/routing/agent-health.ts';
import { servesLanguage } from '../../../shared/pool/language.ts';
import { HEARTBEAT_GONE_MS, HEARTBEAT_UNKNOWN_MS } from '../../../shared/pool/limits.ts';
import { agent, now } from './fleet.ts';

const unknown = HEARTBEAT_UNKNOWN_MS;
const gone = HEARTBEAT_GONE_MS;

describe('C6 health', () => {
  it.each([
    ['ready', true, 0, {}],
    ['ready', true, unknown, {}],
    ['ready', true, -5, {}],
    ['unknown', true, unknown + 1, {}],
    ['unknown', true, gone, {}],
    ['gone', false, gone + 1, {}],
    ['gone', false, gone + 1, { draining: true }],
    ['draining', false, 0, { draining: true, engineReady: false }],
    ['joining', false, 0, { engineReady: false }],
    ['joining', false, unknown + 1, { engineReady: false }],
  ])('%s (takes work: %s) after %i ms with %j', (state, able, silent, load) => {
    const health = healthOf(agent('a', {}, load, now - silent), now);
    expect([health, takesWork(health)]).toEqual([state, able]);
  });
});

describe('C6 languages', () => {
  it.each([
    [['en'], 'en', true],
    [['en'], 'en-GB', true],
    [['EN'], 'en-gb', true],
    [['en-US'], 'en', true],
    [['en-US'], 'en-GB', false],
    [['en'], 'eng', true],
    [['en'], 'enx', false],
    [['de', 'zh'], 'zh-Hant-TW', true],
    [['en'], 'fr', false],
    [['en'], undefined, true],
    [['en'], 'auto', true],
    [['en'], '', true],
  ])('%j for %s: %s', (served, wanted, expected) => {
    expect(servesLanguage(served, wanted)).toBe(expected);
  });
});
