import { expect, it } from 'vitest';
import { readSettings } from '../../functions/settings.ts';

const enough = { STORAGE_CONNECTION: 'UseDevelopmentStorage=true', SQS_REGION: 'eu-west-1' };

it('opens nothing by default: without keys nobody may ask, and nothing self-issued is believed', () => {
  const defaults = { JOBS_QUEUE: 'jobs', ZONES: ['eu', 'us'], ZONE_KEYS: {}, MODE: 'production' };
  expect(readSettings(enough)).toEqual({ ...enough, ...defaults });
});

it('trusts self-issued attestations only when both settings say so', () => {
  const jwks = { keys: [{ kty: 'EC' }] };
  const policy = { issuers: [{ issuer: 'x', profile: 'development', jwks }], development: true };
  const read = (MODE: string) => readSettings({ ...enough, ATTESTATION: JSON.stringify(policy), MODE });
  expect(read('production').ATTESTATION?.development).toBe(false);
  expect(read('development').ATTESTATION?.development).toBe(true);
});

it('names what is missing and shows no value', () => {
  expect(() => readSettings({ STORAGE_CONNECTION: 'x' })).toThrow(/SQS_REGION/);
  expect(() => readSettings({ ...enough, EDGE_KEYS: 'a secret' })).toThrow(/^(?!.*secret).*EDGE_KEYS/);
  expect(() => readSettings({ ...enough, SQS_ENDPOINT: 'secret in the wrong place' })).toThrow(
    /^(?!.*secret).*SQS_ENDPOINT/,
  );
});
