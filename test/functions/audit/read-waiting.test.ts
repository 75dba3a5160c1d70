import { HttpRequest } from '@azure/functions';
import { describe, expect, it } from 'vitest';
import { nameOfReceived } from '../../../functions/audit/intake/intake.ts';
import { asideName, COMMIT_BYTES, readWaiting } from '../../../functions/audit/intake/read-waiting.ts';
import { DELIVERY_GAP_MS } from '../../../functions/audit/sequencer/sequence.ts';
import { readText } from '../../../functions/http/read-text.ts';
import { HiddenLog } from './hidden-log.ts';

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

describe('C9 the input of one commit', () => {
  it('an unreadable delivery is put aside unchanged, and the log continues', async () => {
    const log = new HiddenLog();
    const broken = 'eu/AAAA/life/0000000000000001-0000000000000002';
    for (const text of ['{"v":1', '{"v":2}', '']) {
      await log.store.create('intake', broken, bytesOf(text));
      await log.write(log.event());
      expect([...log.store.area('intake').keys()]).toEqual([asideName(broken)]);
      expect(log.store.area('intake').get(asideName(broken))?.bytes).toEqual(bytesOf(text));
      await log.store.remove('intake', asideName(broken));
    }
    expect(log.read().leaves.filter(({ type }) => type === 'inference.complete')).toHaveLength(3);
  });

  it('deliveries behind an unreadable one follow a gap leaf', async () => {
    const log = new HiddenLog();
    await log.deliver(log.event());
    const [[name = ''] = []] = log.store.area('intake');
    log.store.area('intake').set(name, { bytes: bytesOf('?'), version: '1' });
    await log.commit();
    await log.deliver(log.event());
    await log.commit();
    log.now += DELIVERY_GAP_MS;
    await log.commit();
    const types = log.read().leaves.map(({ type }) => type);
    expect(types.slice(-2)).toEqual(['producer.gap', 'inference.complete']);
  });

  it('C9 no more bytes than fit, in their order, and at least one', async () => {
    const log = new HiddenLog();
    await log.deliver(log.event());
    const [[first = '', kept] = []] = log.store.area('intake');
    const long = {
      ...JSON.parse(new TextDecoder().decode(kept?.bytes)),
      more: 'x'.repeat(COMMIT_BYTES),
    };
    const names = [first];
    for (const from of [2, 3]) {
      const name = nameOfReceived('eu', { ...long, from });
      names.push(name);
      await log.store.create('intake', name, bytesOf(JSON.stringify({ ...long, from })));
    }
    const takes = async (some: string[]) => (await readWaiting(log.store, some)).waiting.map(({ name }) => name);
    expect(await takes(names)).toEqual([first]);
    expect(await takes(names.slice(1))).toEqual([names[1]]);
    expect(await takes(['eu/gone', ...names.slice(1)])).toEqual([names[1]]);
  });

  it('a body that is too long is refused before its end is read', async () => {
    let read = 0;
    const endless = new ReadableStream({
      pull(control) {
        read += 1;
        control.enqueue(bytesOf('ab'));
      },
    });
    const headers = new HttpRequest({ url: 'http://x/', method: 'POST' }).headers;
    expect(await readText({ headers, body: endless } as unknown as HttpRequest, 10)).toBeUndefined();
    expect(read).toBeLessThan(10);
    const short = new HttpRequest({ url: 'http://x/', method: 'POST', body: { string: 'grün' } });
    expect(await readText(short, 5)).toBe('grün');
    expect(
      await readText(new HttpRequest({ url: 'http://x/', method: 'POST', body: { string: 'grün' } }), 4),
    ).toBeUndefined();
  });
});
