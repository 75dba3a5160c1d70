import { describe, expect, it } from 'vitest';
import { late, type Runtime } from '../../../edge/clock.ts';
import { refuseWith } from '../../../edge/http/refuse.ts';
import { answerSpeech, type SpeechSource } from '../../../edge/protocol/speech-answer.ts';
import { readSpeakQuery, readSpeechBody } from '../../../edge/protocol/speech-request.ts';
import { countSocket, SPEAK_SOCKETS_MAX } from '../../../edge/speak/count-socket.ts';
import { SpeakSession } from '../../../edge/speak/speak-session.ts';
import { UnplayedSound } from '../../../edge/speak/unplayed-sound.ts';
import { MiB } from '../../../shared/bytes.ts';
import { publicText, refuse } from '../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../shared/result.ts';

type Event = Extract<Awaited<ReturnType<SpeechSource['next']>>, { ok: true }>['value'];

const revision = `sha256:${'1'.repeat(64)}`;
const ready: Event = { type: 'ready', agent: 'a', model: 'voice', revision };
const head: Event = { type: 'answer', headers: { 'content-type': 'audio/wav' } };
const body = (text: string): Event => ({ type: 'body', bytes: new TextEncoder().encode(text) });
const final: Event = { type: 'final', model: 'voice', revision, durationSeconds: 2 };
const lost = no(refuse('pool_lost'));

/** An answer that consists of these events; the calls that end it are in `calls`. */
function sourceOf(events: readonly (Event | Result<never>)[], mayEnd: Result<undefined> = ok(undefined)) {
  const calls: string[] = [];
  const left = [...events];
  const source: SpeechSource = {
    request: 'r',
    async next() {
      const event = left.shift() ?? lost;
      return 'type' in event ? ok(event) : event;
    },
    deliver: () => void calls.push('deliver'),
    async end(outcome) {
      calls.push(outcome.ok ? `end ${outcome.value.durationSeconds}` : `end ${outcome.refusal.reason}`);
      return mayEnd;
    },
    async broke() {
      calls.push('broke');
      return refuse('internal');
    },
    abandon: () => void calls.push('abandon'),
  };
  return { source, calls };
}

const rendering = { refuse: refuseWith, headers: () => ({ 'x-sample-rate': '16000' }) };

describe('R2 answers with speech', () => {
  it('sends the sound and ends once the end is recorded', async () => {
    const { source, calls } = sourceOf([ready, head, body('one'), { type: 'keepalive' }, body('two'), final]);
    const answer = await answerSpeech(source, rendering);
    expect(answer.headers.get('content-type')).toBe('audio/wav');
    expect(answer.headers.get('x-sample-rate')).toBe('16000');
    expect(await answer.text()).toBe('onetwo');
    expect(calls).toEqual(['deliver', 'end 2']);
  });

  it.each([
    ['an agent is lost', [ready, head, body('one'), lost], 'end pool_lost', ok(undefined)],
    ['the end is not recorded', [ready, head, body('one'), final], 'end 2', no(refuse('audit_unavailable'))],
  ] as const)('breaks off when %s after the first sound', async (_, events, call, mayEnd) => {
    for (const framed of [false, true]) {
      const { source, calls } = sourceOf(events, mayEnd);
      const answer = await answerSpeech(source, { ...rendering, framed });
      await expect(answer.text()).rejects.toThrow();
      expect(calls).toEqual(['deliver', call]);
    }
  });

  it('is an ordinary refusal before the first sound', async () => {
    const { source, calls } = sourceOf([ready, head, no(refuse('engine_failed'))]);
    const answer = await answerSpeech(source, rendering);
    expect(answer.status).toBe(502);
    expect(calls).toEqual(['end engine_failed']);
  });

  it('abandons the work when the client leaves', async () => {
    const { source, calls } = sourceOf([ready, head, body('one'), body('two'), final]);
    const reader = (await answerSpeech(source, rendering)).body?.getReader();
    await reader?.read();
    await reader?.cancel();
    expect(calls).toEqual(['deliver', 'abandon']);
  });

  it('wraps the sound in the events of OpenAI', async () => {
    const { source } = sourceOf([ready, head, body('one'), { type: 'keepalive' }, final]);
    const answer = await answerSpeech(source, { ...rendering, framed: true });
    expect(answer.headers.get('content-type')).toContain('text/event-stream');
    const usage = { input_tokens: 0, output_tokens: 0, total_tokens: 0, seconds: 2 };
    expect(await answer.text()).toBe(
      [
        `data: ${JSON.stringify({ type: 'speech.audio.delta', audio: btoa('one') })}`,
        ': keepalive',
        `data: ${JSON.stringify({ type: 'speech.audio.done', usage })}`,
        '',
      ].join('\n\n'),
    );
  });
});

describe('R2 requests for speech', () => {
  const asked = { model: 'voice-en', input: 'Hello.', voice: 'slt' };

  it('reads OpenAI’s body, with WAV by default', () => {
    const options = { model: 'voice-en', voice: 'slt', encoding: 'linear16', container: 'wav', sampleRate: 16_000 };
    expect(readSpeechBody(asked)).toMatchObject({ ok: true, value: { text: 'Hello.', options, framed: false } });
    const others = { voice: { id: 'awb' }, response_format: 'pcm', speed: 1.5, stream_format: 'sse' };
    expect(readSpeechBody({ ...asked, ...others })).toMatchObject({
      ok: true,
      value: { options: { voice: 'awb', rate: 1.5, container: 'none', sampleRate: 24_000 }, framed: true },
    });
  });

  it.each([
    [{ response_format: 'mp3' }, 'must be wav, pcm or opus: no encoder with a permissive licence exists for mp3'],
    [{ speed: 4 }, '"speed"'],
    [{ input: '' }, '"input"'],
    [{ input: 'a'.repeat(4_097) }, '"input"'],
    [{ voice: 7 }, 'must be the name of a voice'],
    [{ model: undefined }, 'The field "model" is missing'],
  ])('refuses a body with %j', (change, text) => {
    const read = readSpeechBody({ ...asked, ...change });
    expect(read.ok ? 'read' : publicText(read.refusal)).toContain(text);
  });

  it('reads the query of Deepgram with its defaults', () => {
    const read = (query: string, isLive = false) => {
      const options = readSpeakQuery(new URLSearchParams(query), isLive);
      return options.ok ? options.value : publicText(options.refusal);
    };
    expect(read('model=v')).toMatchObject({ encoding: 'linear16', container: 'wav', sampleRate: 24_000 });
    expect(read('model=v', true)).toMatchObject({ encoding: 'linear16', container: 'none', sampleRate: 24_000 });
    expect(read('encoding=mulaw&container=none')).toMatchObject({ container: 'none', sampleRate: 8_000 });
    expect(read('encoding=opus')).toMatchObject({ encoding: 'opus', container: 'ogg' });
    expect(read('encoding=mp3')).toContain('must be one of linear16, mulaw, alaw, opus');
    expect(read('encoding=opus', true)).toContain('must be one of linear16, mulaw, alaw');
    expect(read('sample_rate=44100')).toContain('must be 24000, 8000, 16000, 32000, 48000');
    expect(read('container=wav', true)).toContain('must be none');
    expect(read('callback=https://x.example')).toContain('callback');
  });
});

/** A session on a socket whose messages are kept; `answers` are the sounds of its flushes. */
function openSession(answers: readonly SpeechSource[]) {
  const sent: string[] = [];
  const spoken: string[] = [];
  const listeners = new Map<string, (event: never) => void>();
  const left = [...answers];
  const socket = {
    binaryType: 'blob',
    accept: () => {},
    send: (message: string | Uint8Array) =>
      void sent.push(typeof message === 'string' ? message : `sound ${new TextDecoder().decode(message)}`),
    close: (code: number, reason: string) => void sent.push(`close ${code} ${reason}`),
    addEventListener: (type: string, listener: (event: never) => void) => void listeners.set(type, listener),
  };
  /** Alarms that are set, by their delay. */
  const alarms = new Map<number, () => void>();
  const runtime: Runtime = {
    now: () => 0,
    random: () => 0,
    after: (ms) => ({
      rings: new Promise((resolve) => void alarms.set(ms, () => resolve(late))),
      cancel: () => void alarms.delete(ms),
    }),
  };
  const session = new SpeakSession({
    socket: socket as unknown as RuntimeSocket,
    speak: async (text) => {
      spoken.push(text);
      const source = left.shift();
      return source ? ok(source) : no(refuse('allowance_requests'));
    },
    claims: { sessionSeconds: 60, idleSeconds: 10 },
    pause: new TextEncoder().encode('pause'),
    byteRate: 96_000,
    runtime,
  });
  session.start('metadata');
  const tell = (...messages: object[]) => {
    for (const message of messages) listeners.get('message')?.({ data: JSON.stringify(message) } as never);
  };
  const types = () =>
    sent.map((one) => {
      if (!one.startsWith('{')) return one;
      const { type, sequence_id: id, code } = JSON.parse(one);
      return `${type} ${id ?? code}`;
    });
  return { session, tell, types, spoken, listeners, alarms };
}

const speech = (...texts: string[]) => sourceOf([ready, head, ...texts.map(body), final]).source;

const say = (text: string) => ({ type: 'Speak', text });

describe('R2 speech on a WebSocket', () => {
  it('speaks the text of each flush and closes behind the last', async () => {
    const { session, tell, types, spoken } = openSession([speech('a', 'b'), speech('c')]);
    const flush = { type: 'Flush' };
    tell(say('One '), say('two.'), flush, flush, say('Three.'), { type: 'Close' });
    await session.ended;
    expect(spoken).toEqual(['One two.', 'Three.']);
    const expected = [
      'metadata',
      'sound a',
      'sound b',
      'Flushed 0',
      'Flushed 1',
      'sound c',
      'Flushed 2',
      'close 1000 ',
    ];
    expect(types()).toEqual(expected);
  });

  it('speaks complete sentences before their Flush, with a pause between them', async () => {
    const { session, tell, types, spoken } = openSession([speech('a'), speech('b'), speech('c'), speech('d')]);
    tell(say('At 3.5 Mr. Hill '), say('left. '));
    expect(spoken).toEqual([]);
    tell(say('He ran. Then'));
    expect(spoken).toEqual(['At 3.5 Mr. Hill left. He ran.']);
    await expect.poll(types).toEqual(['metadata', 'sound a']);
    tell(say(' he sat. No'), say('w. '));
    await expect.poll(types).toHaveLength(4);
    tell({ type: 'Flush' }, say('<speak>One. Two.'), say(' Three.</speak>'), { type: 'Close' });
    await session.ended;
    expect(spoken.slice(1)).toEqual([' Then he sat.', ' Now. ', '<speak>One. Two. Three.</speak>']);
    const rest = ['sound pause', 'sound b', 'sound pause', 'sound c', 'Flushed 0', 'sound d', 'Flushed 1'];
    expect(types().slice(2)).toEqual([...rest, 'close 1000 ']);
  });

  it('joins the sentences that come while another is spoken, and clears them', async () => {
    const { session, tell, spoken, types } = openSession([speech('a'), speech('b')]);
    tell(say('One. Two'), say('. Three. Fo'), say('ur.'), { type: 'Flush' }, { type: 'Close' });
    await session.ended;
    expect(spoken).toEqual(['One.', ' Two. Three. Four.']);
    const cleared = openSession([speech('a')]);
    cleared.tell(say('One. Two. Three'), { type: 'Clear' }, { type: 'Close' });
    await cleared.session.ended;
    expect(cleared.types()).toEqual(['metadata', 'Cleared 0', 'close 1000 ']);
    expect(types()).toContain('Flushed 0');
  });

  it('sends nothing of a cleared text', async () => {
    const { source, calls } = sourceOf([ready, head, body('a'), body('b'), final]);
    const { session, tell, types } = openSession([source]);
    tell({ type: 'Speak', text: 'One.' }, { type: 'Flush' }, { type: 'Speak', text: 'Two.' }, { type: 'Clear' });
    tell({ type: 'Close' });
    await session.ended;
    expect(types()).toEqual(['metadata', 'Cleared 1', 'close 1000 ']);
    expect(calls).toContain('abandon');
  });

  it.each([
    [
      'a loss',
      [sourceOf([ready, head, body('a'), lost]).source],
      ['sound a', 'Warning pool_lost', 'close 1011 pool_lost'],
    ],
    ['a spent allowance', [], ['Warning allowance_requests', 'close 1011 allowance_requests']],
  ])('closes with 1011 after %s', async (_, answers, expected) => {
    const { session, tell, types } = openSession(answers);
    tell({ type: 'Speak', text: 'One.' }, { type: 'Flush' });
    await session.ended;
    expect(types().slice(1)).toEqual(expected);
  });

  it.each([[], [{ type: 'Close' }]])('stays open while it speaks, and is idle after it (%j)', async (...last) => {
    const held = Promise.withResolvers<void>();
    const { source } = sourceOf([ready, head, body('a'), body('b'), final]);
    const next = async () => {
      await held.promise;
      return source.next();
    };
    const { session, tell, types, alarms } = openSession([{ ...source, next }]);
    tell(say('One.'), { type: 'Flush' }, ...last);
    alarms.get(10_000)?.();
    await new Promise((resolve) => setTimeout(resolve));
    expect(types()).toEqual(['metadata']);
    held.resolve();
    await expect.poll(types).toContain('Flushed 0');
    if (last.length === 0) alarms.get(10_000)?.();
    await session.ended;
    expect(types().slice(1)).toEqual([
      ...['sound a', 'sound b', 'Flushed 0'],
      last.length === 0 ? 'close 1000 stream_idle' : 'close 1000 ',
    ]);
  });

  it('counts concurrent upgrades of a tenant and returns failed ones', async () => {
    const end = Promise.withResolvers<void>();
    const upgrade = () => countSocket('clinic', async () => ({ ended: end.promise }));
    const opened = await Promise.all(Array.from({ length: SPEAK_SOCKETS_MAX + 1 }, upgrade));
    expect(opened.filter((one) => one === undefined)).toHaveLength(1);
    end.resolve();
    await end.promise;
    const fail = () => countSocket('clinic', () => Promise.reject(new Error('no quota')));
    for (let tries = 0; tries <= SPEAK_SOCKETS_MAX; tries += 1) await expect(fail()).rejects.toThrow('no quota');
    expect(await upgrade()).toBeDefined();
  });

  it('closes with 1011 before a client has too much unread sound', async () => {
    const { source, calls } = sourceOf([
      ...[ready, head, body('a')],
      ...[{ type: 'body', bytes: new Uint8Array(64 * MiB) } as const, body('b'), final],
    ]);
    const { session, tell, types } = openSession([source]);
    tell(say('One.'), { type: 'Flush' });
    await session.ended;
    expect(types()).toEqual(['metadata', 'sound a', 'Warning reader_slow', 'close 1011 reader_slow']);
    expect(calls).toContain('abandon');
  });

  it('lets played time pay for unread sound', () => {
    let now = 0;
    const unplayed = new UnplayedSound(96_000, () => now);
    expect(unplayed.add(64 * MiB)).toBe(true);
    now = 10_000;
    expect(unplayed.add(960_000)).toBe(true);
    expect(unplayed.add(1)).toBe(false);
  });

  it('warns of a text or message that is refused and goes on', async () => {
    const refused = sourceOf([ready, no(refuse('text_invalid', { rule: 'x' }))]).source;
    const { session, tell, types } = openSession([refused, speech('b')]);
    tell({ type: 'Dance' }, { type: 'Speak', text: 'a'.repeat(4_097) });
    tell({ type: 'Speak', text: '<speak>' }, { type: 'Flush' }, { type: 'Speak', text: 'Two.' }, { type: 'Close' });
    await session.ended;
    expect(types().slice(1)).toEqual([
      'Warning field_invalid',
      'Warning text_too_long',
      'Warning text_invalid',
      'Flushed 0',
      'sound b',
      'Flushed 1',
      'close 1000 ',
    ]);
  });

  it('abandons the work when the client leaves', async () => {
    const { source, calls } = sourceOf([ready, head, body('a'), body('b'), final]);
    const { session, tell, listeners } = openSession([source]);
    tell({ type: 'Speak', text: 'One.' }, { type: 'Flush' });
    await Promise.resolve();
    await Promise.resolve();
    listeners.get('close')?.({ code: 1006, reason: '' } as never);
    await session.ended;
    await expect.poll(() => calls.includes('abandon')).toBe(true);
  });
});
