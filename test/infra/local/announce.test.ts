import { describe, expect, it } from 'vitest';
import { announce } from '../../../infra/local/announce.ts';
import { pools as usualPools } from '../../../infra/local/pools.ts';
import type { Served } from '../../../infra/local/serving.ts';

const stack: Parameters<typeof announce>[0] = {
  ...{ url: 'http://127.0.0.1:8787', token: '', tokenFile: '/state/token', parts: [], pools: [], ports: {} },
  ...{ engine: 'embedded', open: false, readyMs: 1 },
};
const model = (id: string, hears: Served['hears'], root?: string): Served => ({
  ...{ id, task: 'transcribe', hears },
  ...(root && { root }),
});
const say = (...models: Served[]) => announce(stack, models);

describe('U4 the announcement of a stack', () => {
  it('says that a synthetic model hears no people, and which does', () => {
    const text = say(model('reference-en', 'synthetic'));
    expect(text).toContain('hears people: no, it is a demonstration on synthetic voices');
    expect(text).toContain('npm start -- --models natural');
  });

  it('says that a model hears people and names it in the command', () => {
    const text = say(model('default', 'people', 'whisper-tiny-en'), model('whisper-tiny-en', 'people'));
    expect(text).toContain('whisper-tiny-en      hears people: yes');
    expect(text).toContain('-F model=whisper-tiny-en ');
    expect(text).not.toContain('--models natural');
  });

  it('marks a pool that serves nothing yet as starting', () => {
    const pools = usualPools.map((pool) => ({ ...pool }));
    const served = { ...model('reference-en', 'synthetic'), pools: [usualPools[0].name] };
    const lines = announce({ ...stack, pools }, [served]).split('\n');
    const isStarting = (name: string) => lines.find((line) => line.includes(name))?.endsWith(', starting');
    expect(usualPools.map(({ name }) => isStarting(name))).toEqual([false, true]);
  });
});
