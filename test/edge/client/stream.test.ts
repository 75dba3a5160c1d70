import { describe, expect, it } from 'vitest';
import type { StreamEvent } from '../../../edge/client/events.ts';
import { type OpenOptions, openStream } from '../../../edge/client/stream.ts';
import { STREAM_MOVES_MAX } from '../../../edge/stream/upstream.ts';
import { eventually } from '../../fake/stream-agent.ts';
import { makeToken } from '../authority.ts';
import { slow } from '../stream-client.ts';
import { forgetSession, startListener } from '../stream-listener.ts';
import { makeNetwork, type Network } from './client-socket.ts';

const letters = (text: string) => new TextEncoder().encode(text);

function open(model: string, change: Partial<OpenOptions> = {}) {
  const network = makeNetwork();
  const stream = openStream({
    url: 'http://edge.test/v1/stream',
    token: () => makeToken(),
    model,
    format: slow,
    WebSocket: network.Socket,
    ...change,
  });
  const events: StreamEvent[] = [];
  const read = (async () => {
    for await (const event of stream.events) events.push(event);
  })();
  // The awaiting test reports the failure.
  read.catch(() => {});
  const transcript = () => events.flatMap((event) => (event.type === 'segment' ? [event.text] : [])).join('|');
  return { network, stream, events, read, transcript };
}

/** Transcript of every stream in this file. */
const poem = 'one two. three four. five six. seven.';
const told = 'one two|three four|five six|seven';

describe('edge/client', () => {
  it('sends, receives and ends', async () => {
    const { name } = await startListener();
    const { stream, transcript, read } = open(name);
    await stream.send(letters('hello there. gene'));
    await stream.send(letters('ral kenobi. and more'));
    const final = await stream.end();
    expect(final).toMatchObject({ segments: 3, model: name });
    await read;
    expect(transcript()).toBe('hello there|general kenobi|and more');
  });

  it('sends what a source yields, from a buffer that is filled again and again', async () => {
    const { name } = await startListener();
    const { stream, transcript } = open(name);
    async function* source() {
      const buffer = new Uint8Array(5);
      for (let at = 0; at < poem.length; at += 5) {
        const piece = letters(poem.slice(at, at + 5));
        buffer.set(piece);
        yield buffer.subarray(0, piece.length);
      }
    }
    await stream.sendAll(source());
    await stream.end();
    expect(transcript()).toBe(told);
  });

  it.each([
    ['an address that is none', { url: 'not an address' }],
    ['a token that no header can hold', { token: 'a b' }],
  ])('%s fails the stream only', async (_, change) => {
    class Strict {
      constructor(_url: string, protocols: string[]) {
        if (protocols.some((one) => one.includes(' '))) throw new SyntaxError('invalid sub-protocol');
      }
    }
    const { stream, read } = open('m', { ...change, WebSocket: Strict as never });
    await expect(stream.end()).rejects.toMatchObject({ name: 'StreamError', reason: 'address_invalid' });
    await expect(read).rejects.toMatchObject({ reason: 'address_invalid' });
  });

  it('requests another token after an expired one, a bounded number of times', async () => {
    const { name } = await startListener();
    const old = await makeToken({}, -3_600);
    let asked = 0;
    const { stream, transcript } = open(name, { token: () => (asked++ === 0 ? old : makeToken()) });
    await stream.send(letters('hello.'));
    await stream.end();
    expect(transcript()).toBe('hello');
    const never = open(name, { token: () => old });
    await expect(never.stream.end()).rejects.toMatchObject({ reason: 'token_expired' });
  });

  it('finalize and clear resolve when they are answered', async () => {
    const { name } = await startListener();
    const { stream, transcript } = open(name);
    await stream.send(letters('one two'));
    await stream.finalize();
    expect(transcript()).toBe('one two');
    await stream.send(letters('forget'));
    await stream.clear();
    await stream.send(letters('this.'));
    await stream.end();
    expect(transcript()).toBe('one two|this');
  });

  it('options hold from where they are set', async () => {
    const { name, agentStreams } = await startListener();
    const { stream } = open(name, { options: { interim: false, endpointingMs: 300 } });
    await stream.send(letters('one'));
    stream.setOptions({ endpointingMs: 900 });
    await stream.send(letters('two'));
    await stream.end();
    const [agentStream] = agentStreams;
    expect(agentStream?.opened?.options).toEqual({ interim: false, endpointingMs: 300 });
    const said = agentStream?.messages.slice(1, 4).map((one) => ('kind' in one ? one.text : one));
    expect(said).toEqual(['one', { type: 'options', options: { interim: false, endpointingMs: 900 } }, 'two']);
  });

  it('waits when the edge has not settled enough, and goes on when it has', async () => {
    const { name, agentStreams } = await startListener(undefined, { checkpoints: false });
    const { stream } = open(name);
    await eventually(() => agentStreams[0]);
    const quiet = letters('_'.repeat(512 * 1024));
    let sent = 0;
    const sending = (async () => {
      for (; sent < 8; sent++) await stream.send(quiet);
    })();
    await eventually(() => sent === 6 && agentStreams[0]?.position === 7 * quiet.length);
    agentStreams[0]?.checkpoint();
    await sending;
    expect(sent).toBe(8);
    await stream.end();
  });

  it('fails every pending call with the reason of the edge', async () => {
    const { stream, read } = open('no-such-model');
    const expected = { name: 'StreamError', reason: 'model_unknown', request: expect.stringMatching(/^[\w-]{36}$/) };
    await expect(stream.end()).rejects.toMatchObject(expected);
    await expect(stream.send(letters('x'))).rejects.toMatchObject(expected);
    await expect(stream.finalize()).rejects.toMatchObject(expected);
    await expect(read).rejects.toMatchObject(expected);
  });

  it('gives up on sound that no recogniser survives', async () => {
    const { name, agentStreams } = await startListener(undefined, {
      before: (agentStream, said) => {
        const poison = 'kind' in said && said.text.includes('!');
        if (poison) agentStream.send({ type: 'refusal', reason: 'engine_failed' });
        return poison;
      },
    });
    const { stream, transcript } = open(name);
    await stream.send(letters('fine. '));
    await eventually(() => transcript() === 'fine');
    await stream.send(letters('poison!'));
    await expect(stream.end()).rejects.toMatchObject({ reason: 'engine_failed' });
    expect(agentStreams.length).toBeLessThanOrEqual(3 * (STREAM_MOVES_MAX + 1));
  });

  it('gives up when the edge stays away', async () => {
    let now = 0;
    const after = (ms: number, call: () => void) => {
      const timer = setTimeout(() => {
        now += ms;
        call();
      }, 1);
      return () => clearTimeout(timer);
    };
    const runtime = { now: () => now, random: () => 0.5, after };
    const network = makeNetwork();
    network.down = true;
    const options = { url: 'http://edge.test/v1/stream', token: 'a.b.c', model: 'm', format: slow } as const;
    const stream = openStream({ ...options, WebSocket: network.Socket, runtime });
    await expect(stream.end()).rejects.toMatchObject({ reason: 'connection_lost' });
    expect(network.sockets.length).toBeGreaterThan(5);
  });

  it('close hangs up, and ends the iteration', async () => {
    const { name, agentStreams } = await startListener();
    const { stream, read } = open(name);
    await stream.send(letters('one'));
    await eventually(() => agentStreams[0]?.position === 3);
    stream.close();
    await read;
    await eventually(() => agentStreams[0]?.closed);
    await expect(stream.send(letters('x'))).rejects.toMatchObject({ reason: 'closed' });
  });
});

describe('C10 R1 edge/client loses nothing', () => {
  it('when its connection breaks within a word, noticed by one side or both', async () => {
    const { name, agentStreams } = await startListener();
    const { stream, transcript, read, network, events } = open(name);
    await stream.send(letters('one two. thr'));
    await eventually(() => agentStreams[0]?.position === 12);
    network.sockets[0]?.break();
    await stream.send(letters('ee four. fi'));
    await eventually(() => agentStreams[0]?.position === 23);
    network.sockets[1]?.vanish();
    await stream.send(letters('ve six. seven.'));
    await stream.end();
    await read;
    expect(transcript()).toBe(told);
    expect(agentStreams).toHaveLength(1);
    expect(events.filter(({ type }) => type === 'resumed')).toHaveLength(2);
    expect(events.filter(({ type }) => type === 'reconnecting').length).toBeGreaterThanOrEqual(2);
  });

  it('when the edge forgets everything, in the middle of a word', async () => {
    const { name, agentStreams } = await startListener();
    const { stream, transcript, network } = open(name);
    await stream.send(letters('one two. thr'));
    await eventually(() => agentStreams[0]?.position === 12);
    await eventually(() => transcript() === 'one two');
    await forgetSession(`acme/${sessionOf(network)}`);
    await stream.send(letters('ee four. five six. seven.'));
    await stream.end();
    expect(transcript()).toBe(told);
    expect(agentStreams[1]?.opened?.from).toMatchObject({ position: 8, index: 1 });
  });

  it('when the edge forgets everything before anything was settled', async () => {
    const { name, agentStreams } = await startListener();
    const { stream, transcript, network } = open(name);
    await stream.send(letters('one t'));
    await eventually(() => agentStreams[0]?.position === 5);
    await forgetSession(`acme/${sessionOf(network)}`);
    await stream.send(letters(poem.slice(5)));
    await stream.end();
    expect(transcript()).toBe(told);
  });

  it('when the connection breaks before the answers came: questions and the end', async () => {
    const { name, agentStreams } = await startListener();
    const { stream, transcript, network } = open(name);
    await stream.send(letters('one two'));
    await eventually(() => agentStreams[0]?.position === 7);
    network.sockets[0]?.deafen();
    const answered = stream.finalize();
    await eventually(() => agentStreams[0]?.index === 1);
    network.sockets[0]?.break();
    await answered;
    expect(transcript()).toBe('one two');
    await stream.send(letters('. three four. five six. seven.'));
    await eventually(() => transcript() === told);
    network.sockets[1]?.deafen();
    const ended = stream.end();
    // The edge has sent everything to a closed socket and dropped the session: the client resumes with its
    // token.
    await eventually(() => agentStreams[0]?.closed);
    network.sockets[1]?.break();
    expect(await ended).toMatchObject({ segments: 4 });
    expect(transcript()).toBe(told);
  });

  it('when everything goes wrong again and again', async () => {
    const { name, agentStreams, agent } = await startListener();
    const { stream, transcript, network } = open(name);
    let at = 0;
    for (const [round, size] of [3, 6, 2, 7, 5, 4, 6, 4].entries()) {
      await stream.send(letters(poem.slice(at, at + size)));
      at += size;
      await eventually(() => Math.max(0, ...agentStreams.map(({ position }) => position)) >= at);
      if (round % 3 === 0) network.sockets.at(-1)?.break();
      else if (round % 3 === 1) agentStreams.at(-1)?.cut();
      else await forgetSession(`acme/${sessionOf(network)}`);
      await agent.send(agent.report());
    }
    await stream.send(letters(poem.slice(at)));
    await stream.end();
    expect(transcript()).toBe(told);
  });
});

/** The name the edge gave the session: the client says it on each connection but the first. */
function sessionOf(network: Network): string {
  const { session } =
    network.sockets.flatMap(({ received: heard }) => heard.filter(({ type }) => type === 'started')).at(-1) ?? {};
  return String(session);
}
