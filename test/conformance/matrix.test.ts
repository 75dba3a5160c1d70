import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';

const root = path.resolve(import.meta.dirname, '../..');
const read = (file: string) => readFileSync(path.join(root, file), 'utf8');

const protocol = read('shared/stream/PROTOCOL.md');
const files = globSync('test/**/*.test.ts', { cwd: root, exclude: (file) => file.endsWith('matrix.test.ts') });
/** Tests whose title begins with the number of a MUST. */
const rows = files.flatMap((where) => {
  const titles = read(where).matchAll(/(['"`])MUST (\d+): (.*?)\1/g);
  return [...titles].map(([, , must, name]) => ({ must: Number(must), name: String(name), where }));
});

const numbers = [...protocol.matchAll(/\[(\d+)\]/g)].map(([, number]) => Number(number));

/** Returns the call of the test with that title and its suite: `it`, `it.each([…])`, or a disabled one. */
function callOf(source: string, title: string): string {
  const before = source.slice(0, source.indexOf(title));
  const own = before.slice(Math.max(...[...before.matchAll(/\b(?:it|test)\b(?=[.(])/g)].map(({ index }) => index)));
  const suites = [...before.matchAll(/^describe\b[.\w]*/gm)].map(([call]) => call);
  // A table of cases is data.
  return `${own.replace(/\(.*/s, '')} ${suites.at(-1) ?? ''}`;
}

const isLeftOut = (source: string, title: string) =>
  /\b(skip|todo|fails|only|skipIf|runIf)\b/.test(callOf(source, title));

describe('the protocol of live streams and its tests', () => {
  it('every numbered sentence is unique and has a MUST', () => {
    expect(new Set(numbers).size).toBe(numbers.length);
    const sentences = protocol.split(/(?=\[\d+\])/).slice(1);
    for (const sentence of sentences) expect(sentence).toMatch(/\bMUST\b/);
  });

  it('tests name exactly the MUSTs of the protocol', () => {
    expect([...new Set(rows.map(({ must }) => must))].sort((a, b) => a - b)).toEqual(numbers.sort((a, b) => a - b));
  });

  it.each(rows)('MUST $must: $name', ({ must, name, where }) => {
    expect(isLeftOut(read(where), `MUST ${must}: ${name}`)).toBe(false);
  });

  it.each([
    ["it.skip('one', () => {})", true],
    ["it.todo('one')", true],
    ["it.skip.each([['only']])('one', () => {})", true],
    ["describe.skip('some', () => {\n  it('one', () => {});\n});", true],
    ["it.skip('other', () => {});\nit.each([['skip']])('one', () => {})", false],
  ])('a test that is left out shows nothing: %s', (source, leftOut) => {
    expect(isLeftOut(source, "'one'")).toBe(leftOut);
  });
});
