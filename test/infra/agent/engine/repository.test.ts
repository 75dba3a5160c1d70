import { describe, expect, it } from 'vitest';
import type { EngineRequest, EngineResponse } from '../../../../infra/pool/agent/engine/http.ts';
import { createRepositoryCalls } from '../../../../infra/pool/agent/engine/repository.ts';

const { signal } = new AbortController();

/** A repository whose requests the test answers. `whole` is an ensemble of `part`. */
function begin() {
  const requests: { readonly path: string; answer(status?: number, body?: unknown): Promise<void> }[] = [];
  const repository = createRepositoryCalls({
    request: ({ path }: EngineRequest) =>
      new Promise<EngineResponse>((resolve) => {
        const answer = async (status = 200, body: unknown = {}) => {
          resolve({ status, headers: {}, body: new TextEncoder().encode(JSON.stringify(body)) });
          await settled();
        };
        requests.push({ path, answer });
      }),
    getJson: async (path) =>
      path.includes('whole') ? { ensemble_scheduling: { step: [{ model_name: 'part' }] } } : {},
  });
  return { requests, repository, paths: () => requests.map(({ path }) => path.replace('/v2/repository/', '')) };
}
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

describe('the model repository of an engine', () => {
  it('A11: two loads of a model are one, and an unload waits for it', async () => {
    const { requests, repository, paths } = begin();
    const loads = [repository.load('a', signal), repository.load('a', signal)];
    const unload = repository.unload('a', signal);
    const other = repository.load('b', signal);
    await settled();
    expect(paths()).toEqual(['models/a/load', 'models/b/load']);
    await requests[0]!.answer();
    expect((await Promise.all(loads)).map(({ ok }) => ok)).toEqual([true, true]);
    expect(paths().slice(2)).toEqual(['models/a/unload']);
    await requests[2]!.answer();
    await requests[3]!.answer(200, [{ name: 'a', version: '1', state: 'UNAVAILABLE', reason: 'unloaded' }]);
    expect((await unload).ok).toBe(true);
    await requests[1]!.answer(500, { error: 'no\n\nmemory' });
    expect(await other).toMatchObject({ refusal: { detail: 'no memory' } });
  });

  it('A11: an abort ends the wait and not the load', async () => {
    const { requests, repository, paths } = begin();
    const stop = new AbortController();
    const first = repository.load('a', stop.signal);
    await settled();
    stop.abort();
    expect(await first).toMatchObject({ ok: false, refusal: { detail: 'load: aborted' } });
    const second = repository.load('a', signal);
    await requests[0]!.answer();
    expect([(await second).ok, paths()]).toEqual([true, ['models/a/load']]);
  });

  it('A11: an unload waits until the steps of an ensemble are free too', async () => {
    const { requests, repository, paths } = begin();
    let over = false;
    const unload = repository.unload('whole', signal).finally(() => {
      over = true;
    });
    await settled();
    await requests[0]!.answer();
    const index = (state: string) => [
      { name: 'whole', version: '1', state: 'UNAVAILABLE', reason: 'unloaded' },
      { name: 'part', version: '1', state, reason: 'unloaded' },
    ];
    await requests[1]!.answer(200, index('UNLOADING'));
    expect(over).toBe(false);
    while (requests.length < 3) await settled();
    await requests[2]!.answer(200, index('UNAVAILABLE'));
    expect((await unload).ok).toBe(true);
    expect(paths()).toEqual(['models/whole/unload', 'index', 'index']);
  });
});
