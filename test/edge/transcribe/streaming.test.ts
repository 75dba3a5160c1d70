import { describe, expect, it } from 'vitest';
import { SEAL_SEGMENT_BYTES } from '../../../shared/seal/limits.ts';
import { final, segment } from '../../fake/agent.ts';
import { askDirectly, readRefusal, startAgent } from '../../fake/network.ts';
import { makeToken } from '../authority.ts';

const model = () => `model-${crypto.randomUUID().slice(0, 8)}`;
const KiB = 1_024;

async function makeRequest(
  name: string,
  body: ReadableStream<Uint8Array>,
  headers: Record<string, string> = {},
  signal?: AbortSignal,
) {
  return new Request('http://edge.test/v1/audio/transcriptions', {
    method: 'POST',
    headers: {
      authorization: `Bearer ${await makeToken()}`,
      'content-type': 'multipart/form-data; boundary=X',
      'x-auricle-model': name,
      ...headers,
    },
    body,
    ...(signal && { signal }),
    ...({ duplex: 'half' } as object),
  });
}

describe('C6 C10 a large body streams', () => {
  it('24 MB pass; the edge leads the agent by few segments', async () => {
    const name = model();
    const agent = await startAgent(name);
    const total = 24 * KiB * KiB;
    const chunk = new Uint8Array(48 * KiB).fill(7);
    let sent = 0;
    let taken = 0;
    let ahead = 0;
    const body = new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          if (sent >= total) return controller.close();
          sent += chunk.length;
          controller.enqueue(chunk);
          ahead = Math.max(ahead, sent - taken);
        },
      },
      { highWaterMark: 0 },
    );
    agent.script = async function* (received) {
      for (let piece = await received.read(); piece; piece = await received.read()) {
        taken += piece.length;
        // A slow agent: everything else gets its turn before the next segment is taken.
        for (let turn = 0; turn < 5; turn += 1) await Promise.resolve();
      }
      yield { type: 'form', fields: { model: [name] } };
      yield final(0);
    };
    const { answer, settled } = await askDirectly(await makeRequest(name, body));
    expect(answer.status).toBe(200);
    expect(await answer.json()).toMatchObject({ text: '' });
    await settled();
    expect(taken).toBe(sent);
    expect(taken).toBeGreaterThanOrEqual(total);
    expect(ahead).toBeLessThanOrEqual(4 * SEAL_SEGMENT_BYTES);
  });

  it('reads the agent only as fast as the caller reads', async () => {
    const name = model();
    const agent = await startAgent(name);
    let said = 0;
    agent.script = async function* (received) {
      await received.all();
      yield { type: 'form', fields: { model: [name], stream: ['true'] } };
      for (let n = 0; n < 1_000; n += 1) {
        said += 1;
        yield segment(n, `part ${n}`);
      }
      yield final(1_000);
    };
    const { answer, settled } = await askDirectly(await makeRequest(name, new Blob(['--X--\r\n']).stream()));
    const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    await new Promise((resolve) => setTimeout(resolve, 0));
    expect(said).toBeLessThan(20);
    await reader.cancel();
    await settled();
  });

  it('a streamed body is not sent to a second agent', async () => {
    const name = model();
    const [one, other] = [await startAgent(name), await startAgent(name, { pool: 'eks-test' })];
    const lose = async function* (received: { read(): Promise<unknown> }) {
      for (let read = 0; read < 40; read += 1) await received.read();
      yield 'cut' as const;
    };
    one.script = other.script = lose;
    const piece = new Uint8Array(64 * KiB);
    let left = 100;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        left -= 1;
        if (left === 0) controller.close();
        else controller.enqueue(piece);
      },
    });
    const { answer, settled } = await askDirectly(await makeRequest(name, body));
    expect(await readRefusal(answer)).toMatchObject({ status: 502, code: 'pool_lost' });
    await settled();
    expect(one.requests + other.requests).toBe(1);
  });
});

describe('C6 a refusal while the caller is still sending', () => {
  it.each([
    ['before the body was looked at', { authorization: 'Bearer nonsense' }, 401],
    ['by the agent, in the middle', {}, 415],
  ])('leaves at once and whole, and the rest is thrown away: %s', async (_, headers, status) => {
    const name = model();
    const agent = await startAgent(name);
    agent.script = async function* (received) {
      await received.read();
      yield { type: 'refusal', reason: 'audio_unsupported' };
    };
    let left = 100;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        left -= 1;
        if (left === 0) controller.close();
        else controller.enqueue(new Uint8Array(64 * KiB));
      },
    });
    const { answer, settled } = await askDirectly(await makeRequest(name, body, headers));
    expect(answer.status).toBe(status);
    expect(left).toBeGreaterThan(50);
    const text = await answer.text();
    expect(answer.headers.get('content-length')).toBe(String(text.length));
    await settled();
    expect(left).toBe(0);
  });
});

describe('C6 a caller that goes away', () => {
  it('while the agent works: it is cancelled, the slot freed, the end recorded', async () => {
    const name = model();
    const agent = await startAgent(name);
    const gone = new AbortController();
    let stopped = false;
    agent.script = async function* () {
      try {
        yield { type: 'keepalive' };
        gone.abort();
        for (;;) {
          await new Promise((resolve) => setTimeout(resolve, 1));
          yield { type: 'keepalive' };
        }
      } finally {
        stopped = true;
      }
    };
    const body = new Blob(['--X--\r\n']).stream();
    const { answer, settled } = await askDirectly(await makeRequest(name, body, {}, gone.signal));
    await answer.body?.cancel();
    await settled();
    while (!stopped) await new Promise((resolve) => setTimeout(resolve, 1));
  });
});
