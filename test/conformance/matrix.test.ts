import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

const protocol = read('shared/stream/PROTOCOL.md');
const rows = read('test/conformance/STREAM.md')
  .split('\n## ')
  .flatMap((section) => {
    const where = `test/${/^`(.*)`/.exec(section)?.[1]}`;
    const found = [...section.matchAll(/^\| (\d+) \| (.*) \|$/gm)];
    return found.map(([, must, name]) => ({ must: Number(must), name: String(name), where }));
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

  it('the matrix lists exactly the MUSTs of the protocol', () => {
    expect([...new Set(rows.map(({ must }) => must))].sort((a, b) => a - b)).toEqual(numbers.sort((a, b) => a - b));
  });

  it.each(rows)('MUST $must: $name', ({ must, name, where }) => {
    const source = read(where);
    // Tests of the agent have their own titles.
    const title = where.startsWith('test/infra/') ? name : `MUST ${must}: ${name}`;
    expect(source).toContain(title);
    expect(isLeftOut(source, title)).toBe(false);
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

  it('every test that names a MUST is in the matrix', () => {
    const files = [...new Set(rows.map(({ where }) => where))];
    for (const where of files) {
      for (const [, must, name] of read(where).matchAll(/MUST (\d+): ((?:[^'`\\]|\\.)*)/g)) {
        expect(rows).toContainEqual({ must: Number(must), name: name?.trim(), where });
      }
    }
  });
});
