import { expect, it } from 'vitest';
import { readSettings } from '../../functions/settings.ts';

const enough = { STORAGE_CONNECTION: 'UseDevelopmentStorage=true', SQS_REGION: 'eu-west-1' };

it('has defaults for the names of the queues only', () => {
  expect(readSettings(enough)).toEqual({ ...enough, JOBS_QUEUE: 'jobs', JOBS_DEAD_QUEUE: 'jobs-dlq' });
});

it('names what is missing and shows no value', () => {
  expect(() => readSettings({ STORAGE_CONNECTION: 'x' })).toThrow(/SQS_REGION/);
  expect(() => readSettings({ ...enough, SQS_ENDPOINT: 'secret in the wrong place' })).toThrow(
    /^(?!.*secret).*SQS_ENDPOINT/,
  );
});
