import { describe, expect, it } from 'vitest';
import { createDispatcher, type Task } from '../../../../infra/pool/agent/engine/dispatch.ts';
import type { Engine } from '../../../../infra/pool/agent/engine/engine.ts';
import { createShare } from '../../../../infra/pool/agent/jobs/share.ts';
import type { RequestClass } from '../../../../shared/tenant/claims.ts';

const turns = async () => {
  for (let i = 0; i < 20; i++) await new Promise(setImmediate);
};

/** Slots that are held until released. */
function begin(slots: number, most: number) {
  const going: { name: string; go: () => void }[] = [];
  const engine = {
    infer: ({ model }: Task) =>
      new Promise((resolve) => going.push({ name: model, go: () => resolve({ ok: true, value: new Map() }) })),
  } as unknown as Engine;
  const dispatcher = createDispatcher({ engine, slots, now: () => 0 });
  const share = createShare(dispatcher, most);
  const task = (model: string, name: RequestClass, signal = new AbortController().signal): Task => ({
    model,
    inputs: [],
    outputs: [],
    class: name,
    deadline: 1_000,
    signal,
  });
  return { going, dispatcher, share, task };
}

describe('batch work beside urgent requests (C11, A2)', () => {
  it('leaves a slot free, so that requests never wait for a piece', async () => {
    const { going, dispatcher, share, task } = begin(3, 2);
    for (const name of ['b1', 'b2', 'b3', 'b4']) void share.run(task(name, 'batch'));
    await turns();
    expect(going.map(({ name }) => name)).toEqual(['b1', 'b2']);
    expect(dispatcher.queued().batch).toBe(0);
    void dispatcher.run(task('live', 'realtime'));
    await turns();
    expect(going.map(({ name }) => name)).toEqual(['b1', 'b2', 'live']);
    going[0]?.go();
    await turns();
    expect(going.map(({ name }) => name)).toEqual(['b1', 'b2', 'live', 'b3']);
  });

  it('queues behind all others when every slot is taken', async () => {
    const { going, dispatcher, share, task } = begin(1, 1);
    void dispatcher.run(task('first', 'default'));
    void share.run(task('b1', 'batch'));
    await turns();
    void dispatcher.run(task('second', 'default'));
    await turns();
    going[0]?.go();
    await turns();
    going[1]?.go();
    await turns();
    expect(going.map(({ name }) => name)).toEqual(['first', 'second', 'b1']);
  });

  it('leaves the queue when cancelled', async () => {
    const { going, share, task } = begin(2, 1);
    const cancel = new AbortController();
    void share.run(task('b1', 'batch'));
    const gone = share.run(task('b2', 'batch', cancel.signal));
    void share.run(task('b3', 'batch'));
    cancel.abort();
    expect(await gone).toMatchObject({ ok: false, refusal: { reason: 'deadline_passed' } });
    expect(await share.run(task('b4', 'batch', cancel.signal))).toMatchObject({ ok: false });
    going[0]?.go();
    await turns();
    expect(going.map(({ name }) => name)).toEqual(['b1', 'b3']);
  });
});
