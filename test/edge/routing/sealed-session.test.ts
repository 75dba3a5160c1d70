import { describe, expect, it } from 'vitest';
import { SEAL_SETUP_MS } from '../../../shared/seal/limits.ts';
import { type FakeAgent, readFields } from '../../fake/agent.ts';
import { passTime, readRefusal, startAgent, upload } from '../../fake/network.ts';

const newModel = () => `model-${crypto.randomUUID().slice(0, 8)}`;
const hello = 'hello there general kenobi';
const textOf = async (answer: Response) => ((await answer.json()) as { text?: string }).text;
const ticketsOf = ({ unary }: FakeAgent) => new Set(unary.map(({ ticket }) => ticket)).size;

describe('C5 requests in a sealed session', () => {
  it('share one ticket; each has its own number and id', async () => {
    const model = newModel();
    const agent = await startAgent(model);
    for (let n = 0; n < 3; n += 1) expect(await textOf(await upload({ fields: [['model', model]] }))).toBe(hello);
    expect(agent.unary.map(({ number }) => number)).toEqual([1, 2, 3]);
    expect(ticketsOf(agent)).toBe(1);
    expect(agent.seen[0]?.ticket).toMatchObject({ v: 2, aud: agent.name, tenant: 'acme', class: 'default', model });
    expect(agent.seen[0]?.head).toMatchObject({ v: 1, task: 'transcribe', dialect: 'openai-audio', model });
    expect(new Set(agent.seen.map(({ ticket }) => ticket.jti)).size).toBe(3);
  });

  it('have their own numbers when they are concurrent', async () => {
    const model = newModel();
    const agent = await startAgent(model);
    await upload({ fields: [['model', model]] });
    const many = await Promise.all(Array.from({ length: 8 }, () => upload({ fields: [['model', model]] })));
    expect(many.map(({ status }) => status)).toEqual(many.map(() => 200));
    expect(new Set(agent.unary.map(({ number }) => number)).size).toBe(9);
  });

  it.each([0, 100, 16_384, 65_536, 200_000])('a file of %i bytes arrives whole', async (size) => {
    const model = newModel();
    const agent = await startAgent(model);
    const file = Uint8Array.from({ length: size }, (_, at) => at % 251);
    let received = new Uint8Array() as Uint8Array;
    const script = agent.script;
    agent.script = async function* (request) {
      received = await request.all();
      yield* script({ ...request, all: async () => received });
    };
    expect(await textOf(await upload({ fields: [['model', model]], file }))).toBe(hello);
    const contentType = String(agent.seen[0]?.head.contentType);
    expect(readFields(received, contentType)).toEqual({ model: [model] });
    expect(Buffer.from(received).includes(Buffer.from(file))).toBe(true);
  });

  it('start another session when the agent refuses theirs or it is old', async () => {
    const model = newModel();
    const agent = await startAgent(model);
    await upload({ fields: [['model', model]] });
    agent.plain = () => Response.json({ reason: 'ticket_invalid' }, { status: 403 });
    expect((await readRefusal(await upload({ fields: [['model', model]] }))).code).toBe('pool_lost');
    agent.plain = undefined;
    await upload({ fields: [['model', model]] });
    expect(ticketsOf(agent)).toBe(2);
    passTime(SEAL_SETUP_MS);
    await agent.send(agent.report());
    await agent.settled();
    await upload({ fields: [['model', model]] });
    expect(ticketsOf(agent)).toBe(3);
    expect(agent.unary.at(-1)?.number).toBe(1);
  });
});

describe('C5 A21 an answer that comes in one piece', () => {
  it.each(['false', 'true'])('is the same to the caller (stream=%s)', async (stream) => {
    const model = newModel();
    const agent = await startAgent(model);
    const ask = () =>
      upload({
        fields: [
          ['model', model],
          ['stream', stream],
        ],
      });
    const pieces = await (await ask()).text();
    agent.whole = true;
    const whole = await (await ask()).text();
    expect(whole).toBe(pieces);
    expect(whole).toContain('kenobi');
  });

  it('unreadable or truncated, is a lost agent: another one serves', async () => {
    const model = newModel();
    const [one, other] = [await startAgent(model), await startAgent(model, { pool: 'eks-test' })];
    const broken: ((bytes: ArrayBuffer) => ArrayBuffer)[] = [
      (bytes) => bytes.slice(0, -1),
      (bytes) => new ArrayBuffer(bytes.byteLength),
      () => new ArrayBuffer(0),
    ];
    for (const change of broken) {
      let served = 0;
      for (const agent of [one, other]) {
        agent.whole = true;
        agent.change = (bytes) => {
          served += 1;
          return served === 1 ? change(bytes) : bytes;
        };
      }
      expect(await textOf(await upload({ fields: [['model', model]] }))).toBe(hello);
      expect(served).toBe(2);
    }
  });
});
