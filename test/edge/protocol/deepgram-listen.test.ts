import { createHash } from 'node:crypto';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { WAV_HEADER_BYTES } from '../../../edge/protocol/deepgram-container.ts';
import { deepgramListen } from '../../../edge/protocol/deepgram-listen.ts';
import { STREAM_REQUESTS_MAX } from '../../../edge/protocol/limits.ts';
import type { ClientCommand, LiveProtocol, SessionEvent } from '../../../edge/protocol/live-protocol.ts';
import { STREAM_CONTROL_CHARACTERS } from '../../../edge/protocol/read-text.ts';
import { publicText, type Reason, refuse } from '../../../shared/refusal.ts';

const NOW = 1_760_000_000_000;
const session = { id: 's', request: '0b0e4bb2-0000-4000-8000-000000000001', now: NOW, expires: NOW + 3_600_000 };
const raw = 'model=reference-en&encoding=linear16&sample_rate=16000';

const read = (query: string) => deepgramListen(new URL(`https://edge.test/v1/listen?${query}`));

function make(query: string): LiveProtocol {
  const made = read(query);
  if (!made.ok) throw new Error(JSON.stringify(made.refusal));
  return made.value;
}

type Frame = { type: string; [name: string]: unknown };
const parse = (frames: readonly (string | Uint8Array)[]): Frame[] => frames.map((frame) => JSON.parse(String(frame)));

function talk(query = raw) {
  const protocol = make(query);
  expect(protocol.open(session)).toEqual([]);
  return {
    protocol,
    begun: protocol.begin?.(NOW) ?? [],
    send: (message: object | string | Uint8Array): readonly ClientCommand[] =>
      protocol.receive(
        typeof message === 'string' || message instanceof Uint8Array ? message : JSON.stringify(message),
        NOW,
      ),
    tell: (...events: SessionEvent[]): Frame[] => events.flatMap((event) => parse(protocol.render(event, NOW))),
  };
}

const replies = (steps: readonly ClientCommand[]) =>
  steps.flatMap((step) => (step.type === 'reply' ? parse(step.frames) : []));
const kinds = (steps: readonly ClientCommand[]) => steps.map(({ type }) => type);

const words = [
  { word: 'good', start: 0.5, end: 0.7, confidence: 0.95 },
  { word: 'morning', start: 0.75, end: 1.2000000001, confidence: 0.85 },
];
const ready: SessionEvent = { type: 'ready', agent: 'a', model: 'reference-en', revision: 'rev-1', language: 'en' };
const interim: SessionEvent = {
  type: 'interim',
  index: 0,
  start: 0.5,
  end: 1.2,
  text: 'good morning',
  words,
  stable: 1,
  confidence: 0.9,
};
const segment = (ending: 'endpoint' | 'finalize' | 'length' | 'end'): SessionEvent => ({
  type: 'segment',
  index: 0,
  start: 0.5,
  end: 1.2,
  text: 'good morning',
  words,
  confidence: 0.9,
  logProbability: -0.1,
  ending,
});

describe('C10 the address of a Deepgram stream', () => {
  it.each([
    ['encoding=linear16&sample_rate=16000', { encoding: 'linear16', rate: 16_000, channels: 1 }],
    ['encoding=linear16&sample_rate=44100&channels=2', { encoding: 'linear16', rate: 44_100, channels: 2 }],
    ['encoding=mulaw', { encoding: 'mulaw', rate: 8_000, channels: 1 }],
    ['encoding=opus', { encoding: 'opus', rate: 48_000, channels: 1 }],
    ['encoding=ogg-opus&sample_rate=48000', { encoding: 'ogg-opus', rate: 48_000, channels: 1 }],
  ])('says the format: %s', (query, format) => {
    const [start] = talk(`model=m&${query}`).begun;
    expect(start).toMatchObject({ type: 'start', request: { model: 'm', format } });
  });

  it.each([
    ['', { interim: false, endpointingMs: 300 }],
    ['&interim_results=true&endpointing=500', { interim: true, endpointingMs: 500 }],
    ['&endpointing=false', { interim: false, endpointingMs: false }],
    ['&endpointing=10', { interim: false, endpointingMs: 100 }],
    ['&utterance_end_ms=1000&interim_results=true', { interim: true, endpointingMs: 300, utteranceEndMs: 1_000 }],
  ])('maps its query to options: %s', (query, options) => {
    const [start] = talk(raw + query).begun;
    expect(start).toMatchObject({ request: { options } });
  });

  it.each([
    ['language=en', 'en'],
    ['language=en-GB', 'en-GB'],
    ['language=multi', undefined],
    ['', undefined],
  ])('says the language: %s', (query, language) => {
    const [start] = talk(`${raw}&${query}`).begun;
    if (start?.type !== 'start') throw new Error('not started');
    expect(start.request.language).toBe(language);
  });

  it.each([
    'punctuate=true&smart_format=true&numerals=true&dictation=true&no_delay=true',
    'diarize=false&redact=false&profanity_filter=false&multichannel=false',
    'mip_opt_out=true&tag=one&tag=two&extra=key:value&version=latest',
    'a_parameter_of_tomorrow=7',
  ])('may wish for %s, which changes nothing', (query) => {
    expect(read(`${raw}&${query}`).ok).toBe(true);
  });

  it.each([
    ['redact=pii', 'redact'],
    ['redact=false&redact=pci', 'redact'],
    ['replace=this:that', 'replace'],
    ['search=word', 'search'],
    ['detect_entities=true', 'detect_entities'],
    ['callback=https://example.org', 'callback'],
    ['multichannel=true&channels=2', 'multichannel'],
    ['channels=6', 'channels'],
    ['sample_rate=4000', 'sample_rate'],
    ['sample_rate=fast', 'sample_rate'],
    ['endpointing=soon', 'endpointing'],
    ['interim_results=perhaps', 'interim_results'],
    ['utterance_end_ms=5', 'utterance_end_ms'],
    ['language=English!', 'language'],
  ])('may not wish for %s: it is refused and named', (query, field) => {
    expect(
      read(`model=m&encoding=linear16&${query.includes('sample_rate') ? '' : 'sample_rate=16000&'}${query}`),
    ).toMatchObject({
      ok: false,
      refusal: { reason: 'field_invalid', params: { field } },
    });
  });

  it.each([
    ['model=a b&encoding=linear16&sample_rate=16000', 'field_invalid', 'model'],
    ['model=m&encoding=linear16', 'field_missing', 'sample_rate'],
    ['model=m&encoding=amr-nb&sample_rate=8000', 'field_invalid', 'encoding'],
    ['model=..%2f&encoding=mulaw', 'field_invalid', 'model'],
  ])('is refused as %s', (query, reason, field) => {
    expect(read(query)).toMatchObject({ ok: false, refusal: { reason, params: { field } } });
  });
});

describe('C10 messages of Deepgram clients', () => {
  it('LiveKit: a KeepAlive before any sound', () => {
    const { send, begun } = talk();
    expect(kinds(begun)).toEqual(['start']);
    expect(kinds(send({ type: 'KeepAlive' }))).toEqual(['alive']);
    expect(kinds(send({ type: 'KeepAlive' }))).toEqual(['alive']);
    expect(kinds(send(new Uint8Array(320)))).toEqual(['audio']);
  });

  it('an empty message is no sound and no end', () => {
    expect(kinds(talk().send(new Uint8Array(0)))).toEqual(['alive']);
  });

  it('Finalize, CloseStream', () => {
    const { send } = talk();
    send(new Uint8Array(320));
    expect(send({ type: 'Finalize' })).toEqual([{ type: 'finalize', id: 1 }]);
    expect(send({ type: 'Finalize' })).toEqual([{ type: 'finalize', id: 2 }]);
    expect(send({ type: 'CloseStream' })).toEqual([{ type: 'end' }]);
  });

  it('§3-18 unanswered Finalize messages are bounded', () => {
    const { send, tell } = talk();
    for (let i = 0; i < STREAM_REQUESTS_MAX; i++) expect(kinds(send({ type: 'Finalize' }))).toEqual(['finalize']);
    expect(replies(send({ type: 'Finalize' }))).toMatchObject([{ type: 'Error', code: 'frame_invalid' }]);
    tell({ type: 'finalized', id: 1 });
    expect(kinds(send({ type: 'Finalize' }))).toEqual(['finalize']);
  });

  it('Finalize before it is known what the sound will be is answered at once', () => {
    expect(replies(talk('model=m').send({ type: 'Finalize' }))).toMatchObject([
      { type: 'Results', from_finalize: true },
    ]);
  });

  it.each(['{', '7', '{}', '{"type":"Explode"}', '{"type":"constructor"}'])(
    '%s is answered and the stream stays open',
    (message) => {
      const steps = talk().send(message);
      expect(kinds(steps)).toEqual(['reply']);
      expect(replies(steps)[0]).toMatchObject({ type: 'Error', request_id: session.request });
    },
  );

  it('Configure changes what can change', () => {
    const { send } = talk();
    send(new Uint8Array(2));
    const steps = send({ type: 'Configure', features: { endpointing: 800, interim_results: true } });
    expect(steps[0]).toEqual({ type: 'options', options: { interim: true, endpointingMs: 800 } });
    expect(replies(steps)).toMatchObject([{ type: 'ConfigureSuccess' }]);
    expect(replies(send({ type: 'Configure', features: { diarize: true } }))).toMatchObject([
      { type: 'ConfigureFailure' },
    ]);
    expect(replies(send({ type: 'Configure', thresholds: {} }))).toMatchObject([{ type: 'ConfigureFailure' }]);
    expect(replies(send({ type: 'Configure', keyterms: ['x'.repeat(65)] }))).toMatchObject([
      { type: 'ConfigureFailure' },
    ]);
  });
});

describe('§3-18 text that is long', () => {
  it('C10 is refused unread, and the connection stays', () => {
    const parse = vi.spyOn(JSON, 'parse');
    onTestFinished(() => void vi.restoreAllMocks());
    const { protocol, send } = talk();
    const text = `{"type":"KeepAlive","a":"${'x'.repeat(STREAM_CONTROL_CHARACTERS)}"}`;
    const steps = protocol.receive(text, NOW);
    expect(parse).not.toHaveBeenCalled();
    expect(replies(steps)).toMatchObject([{ type: 'Error', code: 'message_too_large' }]);
    expect(send({ type: 'KeepAlive' })).toEqual([{ type: 'alive' }]);
  });
});

describe('C10 sound that says itself what it is', () => {
  const wav = (tag = 1, bits = 16, rate = 16_000, size = 8, list = 0) => {
    const header = Buffer.alloc(44 + list);
    header.write('RIFF', 0);
    header.write('WAVEfmt ', 8);
    header.writeUInt32LE(16, 16);
    header.writeUInt16LE(tag, 20);
    header.writeUInt16LE(1, 22);
    header.writeUInt32LE(rate, 24);
    header.writeUInt32LE((rate * bits) / 8, 28);
    header.writeUInt16LE(bits / 8, 32);
    header.writeUInt16LE(bits, 34);
    let at = 36;
    if (list > 0) {
      header.write('LIST', at);
      header.writeUInt32LE(list - 8, at + 4);
      at += list;
    }
    header.write('data', at);
    header.writeUInt32LE(size, at + 4);
    return new Uint8Array(header);
  };
  const join = (...parts: Uint8Array[]) => new Uint8Array(Buffer.concat(parts));
  const heard = (steps: readonly ClientCommand[]) =>
    steps.flatMap((step) => (step.type === 'audio' ? [...step.audio] : []));

  it.each([1, 7, 44, 45, 60])('a WAV file in pieces of %i bytes, without its header and its tags', (size) => {
    const { send } = talk('model=m');
    const file = join(wav(1, 16, 16_000, 8, 12), Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8), Buffer.from('LIST'));
    const steps: ClientCommand[] = [];
    for (let at = 0; at < file.length; at += size) steps.push(...send(file.subarray(at, at + size)));
    expect(steps.filter(({ type }) => type === 'start')).toEqual([
      expect.objectContaining({
        request: expect.objectContaining({ format: { encoding: 'linear16', rate: 16_000, channels: 1 } }),
      }),
    ]);
    expect(heard(steps)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  });

  it('a WAV file that is still being written goes on', () => {
    const { send } = talk('model=m');
    send(wav(1, 16, 16_000, 0));
    expect(heard(send(new Uint8Array(4_000)))).toHaveLength(4_000);
  });

  it.each([
    [3, 32, 'linear32'],
    [6, 8, 'alaw'],
    [7, 8, 'mulaw'],
  ])('WAV of format %i with %i bits is %s', (tag, bits, encoding) => {
    expect(talk('model=m').send(wav(tag, bits))[0]).toMatchObject({ request: { format: { encoding } } });
  });

  it('Ogg Opus is handed on as it is', () => {
    const page = join(
      Buffer.from('OggS'),
      new Uint8Array(22),
      Uint8Array.of(1, 19),
      Buffer.from('OpusHead'),
      new Uint8Array(11),
    );
    const steps = talk('model=m').send(page);
    expect(steps[0]).toMatchObject({ request: { format: { encoding: 'ogg-opus' } } });
    expect(heard(steps)).toHaveLength(page.length);
  });

  it.each([
    ['24-bit WAV', wav(1, 24), 'audio_live_unsupported'],
    [
      'a WAV of tags',
      join(
        wav(1, 16, 16_000, 8, 12).subarray(0, 36),
        Buffer.from('LIST'),
        Uint8Array.of(255, 255, 255, 0),
        new Uint8Array(WAV_HEADER_BYTES),
      ),
      'audio_invalid',
    ],
  ])('%s is refused', (_, bytes, reason) => {
    expect(talk('model=m').send(bytes)).toMatchObject([{ type: 'close', refusal: { reason } }]);
  });

  it.each([
    ['FLAC', join(Buffer.from('fLaC'), new Uint8Array(100))],
    ['noise', new Uint8Array(200).fill(7)],
  ])('%s is refused with the formats that a live stream may have', (_, bytes) => {
    const { send } = talk('model=m');
    expect(send(bytes.subarray(0, 2))).toEqual([{ type: 'alive' }]);
    const [step] = send(bytes.subarray(2));
    const text = step?.type === 'close' ? publicText(step.refusal) : '';
    expect(text).toContain('WAV');
    expect(text).toContain('Send MP3, FLAC and other files as recordings');
  });

  it('CloseStream before any sound only ends', () => {
    expect(talk('model=m').send('{"type":"CloseStream"}')).toEqual([{ type: 'end' }]);
  });
});

describe('C10 messages to a Deepgram client', () => {
  it('A6 interims have whole words; a half word waits until complete', () => {
    const { tell } = talk(`${raw}&interim_results=true`);
    const words = ['hello', 'wor'].map((word, at) => ({ word, start: at, end: at + 0.5, confidence: 0.9 }));
    const half = { ...interim, text: 'hello wor', words, start: 0, end: 1.5, whole: 1 } as SessionEvent;
    const shown = (frames: Frame[]) =>
      frames.map(({ channel, duration, is_final }) => {
        const [best] = (channel as { alternatives: { transcript: string; words: unknown[] }[] }).alternatives;
        return [best?.transcript, best?.words.length, duration, is_final];
      });
    expect(shown(tell(half))).toEqual([['hello', 1, 0.5, false]]);
    // The half word grew: that is no news.
    expect(tell({ ...half, text: 'hello worl' } as SessionEvent)).toEqual([]);
    expect(tell({ ...half, words: words.slice(0, 1), whole: 0 } as SessionEvent)).toEqual([]);
    expect(shown(tell({ ...half, whole: 2 } as SessionEvent))).toEqual([['hello wor', 2, 1.5, false]]);
    // An agent that does not say which words are whole is believed.
    const { whole: _, ...silent } = { ...half, index: 7 } as SessionEvent & { whole: number };
    expect(shown(tell(silent as SessionEvent))).toEqual([['hello wor', 2, 1.5, false]]);
  });

  it('results that may change and results that stay', () => {
    const { tell } = talk(`${raw}&interim_results=true`);
    const told = tell(ready, interim, segment('endpoint'));
    expect(told).toEqual([
      {
        type: 'Results',
        channel_index: [0, 1],
        duration: 0.7,
        start: 0.5,
        is_final: false,
        speech_final: false,
        channel: {
          alternatives: [
            {
              transcript: 'good morning',
              confidence: 0.9,
              words: [
                { word: 'good', start: 0.5, end: 0.7, confidence: 0.95, punctuated_word: 'good' },
                { word: 'morning', start: 0.75, end: 1.2, confidence: 0.85, punctuated_word: 'morning' },
              ],
            },
          ],
        },
        metadata: {
          request_id: session.request,
          model_info: { name: 'reference-en', version: 'rev-1', arch: 'auricle' },
          model_uuid: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/),
        },
        from_finalize: false,
      },
      expect.objectContaining({ is_final: true, speech_final: true, from_finalize: false }),
    ]);
  });

  it('no interim results by default', () => {
    expect(talk().tell(interim)).toEqual([]);
  });

  it.each([
    ['endpoint', true, false],
    ['finalize', true, true],
    ['length', false, false],
    ['end', false, false],
  ] as const)('how an utterance ended: %s', (ending, speech_final, from_finalize) => {
    expect(talk().tell(segment(ending))).toMatchObject([{ is_final: true, speech_final, from_finalize }]);
  });

  it('the answer to Finalize, also when nothing was being said', () => {
    const { send, tell } = talk();
    send(new Uint8Array(2));
    send({ type: 'Finalize' });
    expect(tell(segment('finalize'), { type: 'finalized', id: 1 })).toHaveLength(1);
    send({ type: 'Finalize' });
    expect(tell({ type: 'finalized', id: 2 })).toMatchObject([
      {
        type: 'Results',
        is_final: true,
        from_finalize: true,
        start: 1.2,
        duration: 0,
        channel: { alternatives: [{ transcript: '' }] },
      },
    ]);
  });

  it('speech with vad_events, and the end of an utterance', () => {
    const started: SessionEvent = { type: 'speech_started', at: 0.4 };
    expect(talk().tell(started)).toEqual([]);
    expect(talk(`${raw}&vad_events=true`).tell(started)).toEqual([
      { type: 'SpeechStarted', channel: [0, 1], timestamp: 0.4 },
    ]);
    expect(talk().tell({ type: 'utterance_end', lastWordEnd: 1.2 })).toEqual([
      { type: 'UtteranceEnd', channel: [0, 1], last_word_end: 1.2 },
    ]);
  });

  it('C10 only message types that Deepgram documents', () => {
    const events: SessionEvent[] = [
      { type: 'resumed', position: 32_000, time: 1 },
      { type: 'overflow', position: 0, bytes: 320, seconds: 0.01 },
      { type: 'moved', agent: 'a' },
      { type: 'ending', seconds: 10 },
    ];
    expect(talk(`${raw}&vad_events=true`).tell(...events)).toEqual([]);
  });
});

describe('§3-15 the end of a Deepgram stream', () => {
  it('U3 warns of default options that have no effect', () => {
    const { protocol, tell } = talk(`${raw}&diarize=true&profanity_filter=true`);
    tell(ready);
    const totals = { durationSeconds: 1, speechSeconds: 1, segments: 0 };
    const { frames } = protocol.close({ final: { ...ready, ...totals, type: 'final' } }, NOW);
    expect(parse(frames)[0]).toMatchObject({ warnings: [{ parameter: 'diarize' }, { parameter: 'profanity_filter' }] });
  });

  it('is a Metadata and 1000', () => {
    const { protocol, send, tell } = talk();
    send(Uint8Array.of(1, 2));
    send(Uint8Array.of(3, 4));
    tell(ready);
    const final = {
      type: 'final',
      model: 'reference-en',
      revision: 'rev-1',
      language: 'en',
      durationSeconds: 12.3,
      speechSeconds: 9,
      segments: 1,
    } as const;
    const { frames, code } = protocol.close({ final }, NOW);
    expect(code).toBe(1_000);
    expect(parse(frames)).toEqual([
      {
        type: 'Metadata',
        transaction_key: 'deprecated',
        request_id: session.request,
        sha256: createHash('sha256')
          .update(Uint8Array.of(1, 2, 3, 4))
          .digest('hex'),
        created: new Date(NOW).toISOString(),
        duration: 12.3,
        channels: 1,
        models: [expect.any(String)],
        model_info: expect.any(Object),
      },
    ]);
  });

  it.each([
    ['stream_idle', 1011, /^NET-0001/],
    ['audio_unsupported', 1000, /^DATA-0000/],
    ['pool_lost', 1011, /^NET-0000/],
    ['no_pool', 1011, /^NET-0000/],
    ['backlog_full', 1011, /^NET-0000/],
    ['message_too_large', 1008, /^DATA-0000/],
    ['stream_too_long', 1011, /^NET-0000/],
    ['backlog_full', 1011, /^NET-0000/],
    ['language_forbidden', 1008, /^DATA-0000/],
    ['language_needed', 1008, /^DATA-0000/],
    // Its clients would come back for ever.
    ['model_unknown', 1000, /^model_unknown$/],
    ['stream_replaced', 1000, /^stream_replaced$/],
  ] as [Reason, number, RegExp][])('%s is an error and %i', (reason, code, text) => {
    const end = talk().protocol.close({ refusal: refuse(reason, { limit: 10, model: 'm', language: 'x' }) }, NOW);
    expect(parse(end.frames)).toMatchObject([{ type: 'Error', code: reason, request_id: session.request }]);
    expect(end.code).toBe(code);
    expect(end.reason).toMatch(text);
    expect(end.reason.length).toBeLessThanOrEqual(123);
  });

  it('§3-15 sound that breaks is worth another try only when some of it was understood', () => {
    const broken = { refusal: refuse('audio_invalid', { rule: 'x' }) };
    const { protocol } = talk();
    protocol.commit?.(0, NOW);
    expect(protocol.close(broken, NOW)).toMatchObject({ code: 1000, reason: 'DATA-0000 audio_invalid' });
    protocol.commit?.(1, NOW);
    expect(protocol.close(broken, NOW)).toMatchObject({ code: 1008, reason: 'DATA-0000 audio_invalid' });
  });
});
