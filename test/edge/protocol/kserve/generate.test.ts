import { describe, expect, it } from 'vitest';
import { bearer, finalOf, readError } from '../../../fake/kserve-agent.ts';
import { ask, startAgent } from '../../../fake/network.ts';

const unique = () => `model-${crypto.randomUUID().slice(0, 8)}`;
const text = (words: string) => ({ type: 'body', bytes: new TextEncoder().encode(words) }) as const;
const started = { type: 'answer', headers: { 'content-type': 'text/event-stream' } } as const;

const generate = async (model: string, ending = 'generate_stream') =>
  ask(`/v2/models/${model}/${ending}`, {
    method: 'POST',
    headers: { ...(await bearer()), 'content-type': 'application/json' },
    body: '{"text_input":"hello"}',
  });

describe('T2 generation', () => {
  it('as one JSON', async () => {
    const name = unique();
    const agent = await startAgent(name);
    agent.script = async function* (received) {
      expect((await received.all()).toString()).toBe('{"text_input":"hello"}');
      yield { type: 'answer', headers: { 'content-type': 'application/json' }, bytes: 20 };
      yield text('{"text_output":"hi"}');
      yield finalOf(name);
    };
    expect(await (await generate(name, 'generate')).json()).toEqual({ text_output: 'hi' });
    expect(agent.seen[0]?.head).toMatchObject({ task: 'generate', model: name });
  });

  it('as frames, each when it comes', async () => {
    const name = unique();
    const agent = await startAgent(name);
    let proceed = () => {};
    const proceeding = new Promise<void>((resolve) => {
      proceed = resolve;
    });
    agent.script = async function* (received) {
      await received.all();
      yield started;
      yield text('data: {"text_output":"one"}\n\n');
      await proceeding;
      yield { type: 'keepalive' };
      yield text('data: {"text_output":"two"}\n\n');
      yield finalOf(name);
    };
    const answer = await generate(name);
    expect(answer.headers.get('content-type')).toBe('text/event-stream');
    const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
    const first = await reader.read();
    expect(new TextDecoder().decode(first.value)).toBe('data: {"text_output":"one"}\n\n');
    proceed();
    let rest = '';
    for (let step = await reader.read(); !step.done; step = await reader.read())
      rest += new TextDecoder().decode(step.value);
    expect(rest).toBe(': keepalive\n\ndata: {"text_output":"two"}\n\n');
  });

  it('a failure before the first frame is an ordinary error', async () => {
    const name = unique();
    const agent = await startAgent(name);
    agent.script = async function* () {
      yield { type: 'refusal', reason: 'tensors_invalid', params: { rule: 'no such input' } };
    };
    expect(await readError(await generate(name))).toEqual({ status: 400, error: 'no such input' });
  });

  it.each(['refused', 'cut'] as const)(
    'A21 a failure behind it (%s) is a frame with the id of the request',
    async (how) => {
      const name = unique();
      const agent = await startAgent(name);
      agent.script = async function* (received) {
        await received.all();
        yield started;
        yield text('data: {"text_output":"one"}\n\n');
        if (how === 'cut') yield 'cut';
        else yield { type: 'refusal', reason: 'engine_failed' };
      };
      const answer = await generate(name);
      expect(answer.status).toBe(200);
      const frames = (await answer.text()).trim().split('\n\n');
      expect(frames).toHaveLength(2);
      expect(JSON.parse((frames[1] as string).replace('data: ', ''))).toEqual({
        error: expect.stringMatching(/\w/),
        request_id: answer.headers.get('x-request-id'),
      });
    },
  );
});
