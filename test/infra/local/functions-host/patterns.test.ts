import { describe, expect, it } from 'vitest';
import { blobPattern, fillPath, fillSettings, routePattern } from '../../../../infra/local/functions-host/patterns.ts';

describe('routes', () => {
  it.each([
    ['api/uploads', '/api/uploads', {}],
    ['api/uploads', '/API/uploads/', {}],
    ['api/uploads/{id}', '/api/uploads/a%20b', { id: 'a b' }],
    ['api/uploads/{id:int}', '/api/uploads/x', undefined],
    ['api/uploads/{id:int}', '/api/uploads/-7', { id: '-7' }],
    ['api/uploads/{id?}', '/api/uploads', {}],
    ['api/tiles/{*rest}', '/api/tiles/0/x001', { rest: '0/x001' }],
    ['api/a.b', '/api/aXb', undefined],
    ['api/uploads', '/api/uploads/more', undefined],
  ])('%s and %s', (route, path, expected) => expect(routePattern(route)(path)).toEqual(expected));
});

describe('blob paths', () => {
  it.each([
    ['in/{tenant}/{name}.wav', 'acme/a/b.wav', { tenant: 'acme', name: 'a/b' }],
    ['in/{tenant}/{name}.wav', 'acme/b.mp3', undefined],
    ['in/{tenant}-{rest}', 'acme-a/b', { tenant: 'acme', rest: 'a/b' }],
    ['in', 'anything', {}],
  ])('%s and %s', (path, blob, expected) => {
    const { container, match } = blobPattern(path);
    expect(container).toBe('in');
    expect(match(blob)).toEqual(expected);
  });
});

describe('templates', () => {
  it('take settings, and refuse an unset one', () => {
    expect(fillSettings('%A%/x', { A: 'in' })).toBe('in/x');
    expect(() => fillSettings('%B%/x', {})).toThrow('%B%');
  });

  it('are filled from the trigger and from generated values', () => {
    const fill = (template: string) =>
      fillPath(
        template,
        { name: 'n' },
        () => 'random',
        () => new Date(0),
      );
    expect(fill('out/{name}-{rand-guid}-{DateTime}')).toBe('out/n-random-1970-01-01T00:00:00.000Z');
    expect(() => fill('out/{other}')).toThrow('{other}');
  });
});
