import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { readArguments } from '../../../infra/local/arguments.ts';
import { ROOT } from '../../../infra/local/root.ts';

describe('npm start --', () => {
  it('has defaults', () => {
    expect(readArguments([])).toEqual({
      ...{ port: 8787, state: path.join(ROOT, '.auricle'), open: false, verbose: false, help: false },
    });
  });

  it('takes a port and a folder', () => {
    expect(readArguments(['--port', '0', '--state', 'other', '--host'])).toMatchObject({
      port: 0,
      state: 'other',
      open: true,
    });
  });

  it('takes an engine, and models', () => {
    expect(readArguments(['--engine', 'triton', '--models', 'm'])).toMatchObject({ engine: 'triton', models: 'm' });
  });

  it('C6: takes pools', () => {
    expect(readArguments(['--pools', 'us'])).toMatchObject({ pools: [{ name: 'eks-us-east-1' }] });
    expect(readArguments(['--pools', 'mars'])).toHaveProperty('problem');
  });

  it('reports the error in a sentence', () => {
    expect(readArguments(['--port', '-1'])).toEqual({
      problem: '--port wants a value that does not begin with a dash',
    });
    expect(readArguments(['--prot', '1'])).toEqual({ problem: "Unknown option '--prot'" });
  });

  it.each([['--engine', 'riva'], ['--port', 'x'], ['--port', '70000'], ['--port', '-1'], ['--prot', '1'], ['extra']])(
    '%s %s is refused',
    (...given) => {
      expect(readArguments(given.filter(Boolean))).toHaveProperty('problem');
    },
  );
});
