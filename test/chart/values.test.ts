import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { CHART, example, refusal } from './helm.ts';
import { readValues, valuesSchema, valuesTable } from './values.ts';

const values = readValues(readFileSync(path.join(CHART, 'values.yaml'), 'utf8'));
const minimal = example('embedded');
const format = (json: unknown) => `${JSON.stringify(json, null, 2)}\n`;

it('has the version of the release', () => {
  const { version } = JSON.parse(readFileSync(path.join(CHART, '../../../package.json'), 'utf8')) as {
    version: string;
  };
  expect(parse(readFileSync(path.join(CHART, 'Chart.yaml'), 'utf8'))).toMatchObject({ version, appVersion: version });
});

it('documents every value in a comment', () => {
  const bare = values.filter(({ text, initial }) => text === '' && initial !== undefined);
  expect(bare.map(({ path: keys }) => keys.join('.'))).toEqual([]);
});

it('derives values.schema.json from the comments of values.yaml', async () => {
  await expect(format(valuesSchema(values))).toMatchFileSnapshot(path.join(CHART, 'values.schema.json'));
});

it('derives the table of VALUES.md from the comments of values.yaml', async () => {
  const head =
    '# Values\n\nWritten from the comments of [values.yaml](values.yaml) by `npm run test:chart -- --update`.\n\n';
  await expect(head + valuesTable(values)).toMatchFileSnapshot(path.join(CHART, 'VALUES.md'));
});

it.each([
  ['a misspelt section', { gatway: { kind: 'traefik' } }, /additional properties 'gatway' not allowed/],
  ['a misspelt key', { gateway: { knd: 'traefik' } }, /additional properties 'knd' not allowed/],
  ['an unknown engine', { engine: { kind: 'whisper' } }, /engine\/kind.*must be one of/],
  ['a number as text', { drain: { seconds: '120' } }, /drain\/seconds.*got string/],
  ['a number out of range', { agent: { port: 80 } }, /agent\/port.*minimum/],
])('refuses %s', async (_, over, message) => expect(await refusal({ ...minimal, ...over })).toMatch(message));
