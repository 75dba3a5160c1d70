import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { KEEPALIVE_MS } from '../../../../infra/pool/agent/backend.ts';
import { openAnswer } from '../../../../infra/pool/agent/request/answer.ts';
import { ANSWER_EVENT_BYTES } from '../../../../infra/pool/agent/settings/limits.ts';
import { type Message, packMessages } from '../../../../shared/seal/pack.ts';
import type { AnswerEvent } from '../../../../shared/speech/transcript.ts';

/** A response that keeps what it is given; while `full`, it asks the writer to wait. */
class FakeResponse extends EventEmitter {
  written: string[] = [];
  full = false;
  ended = false;
  destroyed = false;
  writeHead() {
    return this;
  }
  write(bytes: Uint8Array) {
    this.written.push(new TextDecoder().decode(bytes));
    return !this.full;
  }
  end() {
    this.ended = true;
  }
  destroy() {
    this.destroyed = true;
  }
}

/** Seals by doing nothing, later records sooner. */
const hastySealer = () => {
  let left = 3;
  async function seal(plaintext: Uint8Array) {
    for (let turns = 10 * left--; turns > 0; turns--) await undefined;
    return plaintext;
  }
  return { seal, pack: (messages: readonly Message[]) => seal(packMessages(messages)) };
};

let response: FakeResponse;
beforeEach(() => {
  vi.useFakeTimers();
  response = new FakeResponse();
});
afterEach(() => vi.useRealTimers());

const open = () => openAnswer(response as unknown as ServerResponse, hastySealer(), KEEPALIVE_MS);
const types = () => response.written.map((text) => (JSON.parse(text) as AnswerEvent).type);

describe('the sealed answer', () => {
  it('T2 is a refusal, however much of a request that refusal quotes', async () => {
    await open().refuse({ reason: 'tensors_invalid', params: { rule: '\u0001'.repeat(100_000), limit: 3 } });
    const [told] = response.written.map((text) => JSON.parse(text));
    expect(told).toEqual({
      type: 'refusal',
      reason: 'tensors_invalid',
      params: { rule: '\u0001'.repeat(200), limit: 3 },
    });
    expect(response.ended).toBe(true);
  });

  it('leaves in the order of the events, whatever sealing takes', async () => {
    const answer = open();
    const ready = { type: 'ready', agent: 'a', model: 'm', revision: 'r' } as const;
    await Promise.all([
      answer.send(ready),
      answer.send({ type: 'form', fields: {} }),
      answer.refuse({ reason: 'internal' }),
    ]);
    expect(types()).toEqual(['ready', 'form', 'refusal']);
    expect(response.ended).toBe(true);
  });

  it('ends once: nothing follows the final event', async () => {
    const answer = open();
    await answer.refuse({ reason: 'internal' });
    await answer.refuse({ reason: 'engine_failed' });
    await vi.advanceTimersByTimeAsync(10 * KEEPALIVE_MS);
    expect(types()).toEqual(['refusal']);
  });

  it('sends keepalives at the promised pace, one at a time when unread', async () => {
    open();
    await vi.advanceTimersByTimeAsync(3 * KEEPALIVE_MS);
    expect(types()).toEqual(['keepalive', 'keepalive', 'keepalive']);
    response.full = true;
    await vi.advanceTimersByTimeAsync(10 * KEEPALIVE_MS);
    expect(types().length).toBe(4);
    response.full = false;
    response.emit('drain');
    await vi.advanceTimersByTimeAsync(KEEPALIVE_MS);
    expect(types().length).toBe(5);
  });

  it('waits while the edge is slow, and no longer once it is gone', async () => {
    const answer = open();
    response.full = true;
    let sent = false;
    const sending = answer.send({ type: 'form', fields: {} }).then(() => {
      sent = true;
    });
    await vi.advanceTimersByTimeAsync(0);
    expect(sent).toBe(false);
    response.emit('close');
    await sending;
    expect(response.listenerCount('drain')).toBe(0);
  });

  it('an event larger than a segment is a bug', async () => {
    const answer = open();
    const fields = { prompt: ['x'.repeat(ANSWER_EVENT_BYTES)] };
    await expect(answer.send({ type: 'form', fields })).rejects.toThrow('too long');
  });
});
