import { describe, expect, it } from 'vitest';
import { percentEncoded } from '../../edge/openapi/values.ts';
import { describeApi } from '../../edge/openapi.ts';
import { kserveRoutes } from '../../edge/protocol/kserve/address.ts';
import { app } from '../../edge/routes.ts';

interface Operation {
  readonly security?: readonly object[];
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly schema: object }[];
}

const document = (await describeApi().json()) as { paths: Record<string, Record<string, Operation>> };
const described = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
);

/** Registrations without an operation of their own, and why. */
const undescribed: readonly (readonly [RegExp, string])[] = [
  [/^OPTIONS /, 'preflights of browsers'],
  [/^ALL \/v2(\/\*)?$/, 'kserve/address.ts reads the addresses below it, which kserveRoutes lists'],
  [/^ALL /, 'refuses other methods and unknown addresses'],
];

/** A path of hono as OpenAPI writes it. */
const written = (path: string) => path.replace(/:(\w+)(\{.*\})?/g, '{$1}');
const isUndescribed = (one: string) => undescribed.some(([pattern]) => pattern.test(one));

const answered = [
  ...app.routes.map(({ method, path }) => `${method} ${path}`).filter((one) => !isUndescribed(one)),
  ...kserveRoutes.map(({ method, path }) => `${method} ${path}`),
].map(written);

describe('C10 the description of the interface', () => {
  it('C10 describes every registered route and no other', () => {
    expect(app.routes.length).toBeGreaterThan(100);
    expect([...described].sort()).toEqual([...answered].sort());
  });

  it('C10 T2 describes the headers of sequences with their bounds', () => {
    const { parameters = [] } = document.paths['/v2/models/{name}/infer']?.post ?? {};
    const headers = Object.fromEntries(
      parameters.filter((one) => one.in === 'header').map((one) => [one.name, one.schema]),
    );
    const name = { type: 'string', minLength: 1, maxLength: 256 };
    expect(headers).toMatchObject({ 'x-auricle-session': name, 'x-auricle-sequence': name });
  });

  it('C10 encodes names of subjects in a header as URIs do', () => {
    const { pattern = '' } = percentEncoded(256);
    const reads = (text: string) => new RegExp(pattern).test(text);
    expect(['a b', '%2F', '%C3%A9', '%E2%82%AC', '%F0%9F%8E%A4'].filter((text) => !reads(text))).toEqual([]);
    expect(['', '%', '%bA=', '%C3', '%C0%80', '%ED%A0%80', '%F5%80%80%80'].filter(reads)).toEqual([]);
  });

  it('C10 names every parameter of a path', () => {
    for (const [path, methods] of Object.entries(document.paths)) {
      const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      for (const { parameters = [] } of Object.values(methods))
        expect(parameters.filter((one) => one.in === 'path').map((one) => one.name)).toEqual(names);
    }
  });
});
