import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { SessionEvent } from '../../../edge/protocol/live-protocol.ts';
import { CONFIG_HEADER, openaiRealtime, refusedRealtime } from '../../../edge/protocol/openai-realtime.ts';
import { STREAM_CONTROL_CHARACTERS } from '../../../edge/protocol/read-text.ts';
import { refuse } from '../../../shared/refusal.ts';
import { append, NOW, PREFIX, parse, sound, talk, types } from './openai-session.ts';

const final = {
  type: 'final',
  model: 'm',
  revision: 'r',
  language: 'en',
  durationSeconds: 1,
  speechSeconds: 1,
  segments: 0,
} as const;

describe('C10 the session of an OpenAI client', () => {
  it('is announced first and unprompted, in the current shape', () => {
    const { frames } = talk();
    expect(frames).toEqual([
      {
        type: 'session.created',
        event_id: expect.stringMatching(/^event_/),
        session: {
          type: 'transcription',
          object: 'realtime.transcription_session',
          id: expect.stringMatching(/^sess_/),
          expires_at: Math.floor((NOW + 3_600_000) / 1_000),
          audio: {
            input: {
              format: { type: 'audio/pcm', rate: 24_000 },
              transcription: { model: 'reference-en' },
              noise_reduction: null,
              turn_detection: { type: 'server_vad', threshold: 0.5, prefix_padding_ms: 300, silence_duration_ms: 500 },
            },
          },
          include: null,
        },
      },
    ]);
  });

  it.each([
    ['intent alone', '?intent=transcription', null],
    ['model alone, as 6.49.0 sends it', '?model=reference-en', 'reference-en'],
    ['both, as Python and LiveKit send them', '?intent=transcription&model=reference-en', 'reference-en'],
    ['neither', '', null],
  ])('§3-11 takes %s', (_, query, model) => {
    const [created] = talk(query).frames;
    expect(created).toMatchObject({ session: { audio: { input: { transcription: { model } } } } });
  });

  it('refuses another intent, and a model that cannot be a name', () => {
    const url = (query: string) => openaiRealtime(new URL(`https://edge.test/v1/realtime${query}`), new Headers());
    expect(url('?intent=conversation')).toMatchObject({ ok: false, refusal: { params: { field: 'intent' } } });
    expect(url('?model=../../etc')).toMatchObject({ ok: false, refusal: { params: { field: 'model' } } });
  });

  it('is configured in parts: what an update does not name stays', () => {
    const { send, frames } = talk();
    send({
      type: 'session.update',
      session: { type: 'transcription', audio: { input: { transcription: { language: 'en' } } } },
    });
    send({
      type: 'session.update',
      session: { audio: { input: { turn_detection: { type: 'server_vad', silence_duration_ms: 250 } } } },
    });
    expect(types(frames)).toEqual(['session.created', 'session.updated', 'session.updated']);
    expect(frames.at(-1)).toMatchObject({
      session: {
        audio: {
          input: {
            transcription: { model: 'reference-en', language: 'en' },
            turn_detection: { type: 'server_vad', threshold: 0.5, prefix_padding_ms: 300, silence_duration_ms: 250 },
          },
        },
      },
    });
  });

  it.each([
    ['a type of session', { type: 'realtime' }, 'session.type'],
    ['a format', { audio: { input: { format: { type: 'audio/mp3' } } } }, 'session.audio.input.format.type'],
    ['a rate', { audio: { input: { format: { type: 'audio/pcm', rate: 4_000 } } } }, 'session.audio.input.format.rate'],
    [
      'a language',
      { audio: { input: { transcription: { language: 'English!' } } } },
      'session.audio.input.transcription.language',
    ],
    [
      'a silence',
      { audio: { input: { turn_detection: { type: 'server_vad', silence_duration_ms: -1 } } } },
      'session.audio.input.turn_detection.silence_duration_ms',
    ],
    ['something to include', { include: ['everything'] }, 'session.include.0'],
    ['nothing', undefined, 'session'],
  ])('answers %s it cannot have with an error that names it, and changes nothing', (_, wish, param) => {
    const { send } = talk();
    const before = send({ type: 'session.update', session: {} });
    const [error] = send({ type: 'session.update', event_id: 'evt_7', session: wish });
    expect(error).toMatchObject({ type: 'error', error: { type: 'invalid_request_error', param, event_id: 'evt_7' } });
    const after = send({ type: 'session.update', session: {} });
    expect(after[0]?.session).toEqual(before[0]?.session);
  });

  it('R3 keeps a list of languages, in its field and in the address', () => {
    const listed = { session: { audio: { input: { transcription: { languages: ['en', 'es'] } } } } };
    const session = { type: 'transcription', audio: { input: { transcription: { language: 'english,es' } } } };
    expect(talk().send({ type: 'session.update', session })[0]).toMatchObject(listed);
    expect(talk('?language=en,es').frames[0]).toMatchObject(listed);
  });

  it('remembers what a client secret was made with', () => {
    const kept = {
      audio: { input: { transcription: { model: 'reference-en', language: 'en' }, turn_detection: null } },
    };
    const { frames } = talk('', { [CONFIG_HEADER]: encodeURIComponent(JSON.stringify(kept)) });
    expect(frames[0]).toMatchObject({ session: kept });
  });

  it.each([
    ['no JSON', '{"type":'],
    ['no object', '7'],
    ['no type', '{}'],
    ['bytes', new Uint8Array(4)],
  ])('answers %s with an error and stays open', (_, message) => {
    const { send, kinds } = talk();
    expect(send(message)[0]).toMatchObject({ type: 'error', error: { code: 'frame_invalid' } });
    expect(kinds()).toEqual([]);
  });

  it.each(['response.create', 'conversation.item.create', 'constructor', 'input_audio_buffer.explode'])(
    'answers an event of the type %s with an error and stays open',
    (type) => {
      const { send, kinds } = talk();
      expect(send({ type, event_id: 'e1' })[0]).toMatchObject({
        type: 'error',
        error: { code: 'event_unknown', param: 'type', event_id: 'e1' },
      });
      expect(kinds()).toEqual([]);
    },
  );
});

describe('C10 sound of an OpenAI client', () => {
  it('starts the stream with the first piece, in the format of the session', () => {
    const { send, steps } = talk();
    expect(send(append())).toEqual([]);
    send(append());
    expect(steps).toEqual([
      {
        type: 'start',
        request: {
          model: 'reference-en',
          format: { encoding: 'linear16', rate: 24_000, channels: 1 },
          options: { interim: true, endpointingMs: 500 },
        },
      },
      { type: 'audio', audio: expect.objectContaining({ length: 4_800 }) },
      { type: 'audio', audio: expect.objectContaining({ length: 4_800 }) },
    ]);
  });

  it.each([
    [{ type: 'audio/pcm' }, { encoding: 'linear16', rate: 24_000, channels: 1 }],
    [
      { type: 'audio/pcm', rate: 16_000 },
      { encoding: 'linear16', rate: 16_000, channels: 1 },
    ],
    [{ type: 'audio/pcmu' }, { encoding: 'mulaw', rate: 8_000, channels: 1 }],
    [{ type: 'audio/pcma' }, { encoding: 'alaw', rate: 8_000, channels: 1 }],
  ])('as %j', (format, encoded) => {
    const { send, steps } = talk();
    send({ type: 'session.update', session: { audio: { input: { format } } } });
    send(append());
    expect(steps.find((step) => step.type === 'start')).toMatchObject({ request: { format: encoded } });
  });

  it.each([
    [{ type: 'server_vad' }, 500],
    [{ type: 'server_vad', silence_duration_ms: 200 }, 200],
    [{ type: 'semantic_vad', eagerness: 'high' }, 400],
    [{ type: 'semantic_vad' }, 800],
    [null, false],
  ])('with turns by %j', (turn_detection, endpointingMs) => {
    const { send, steps } = talk();
    send({ type: 'session.update', session: { audio: { input: { turn_detection } } } });
    send(append());
    expect(steps.find((step) => step.type === 'start')).toMatchObject({ request: { options: { endpointingMs } } });
  });

  it('C10 is refused once for each configuration without a model', () => {
    const { send, kinds, protocol } = talk('?intent=transcription');
    const message =
      'The message is not valid: the session is not configured, so audio is dropped: ' +
      'update session.audio.input.transcription.model first.';
    expect(send(append())).toMatchObject([{ type: 'error', error: { code: 'frame_invalid', message } }]);
    expect([...send(append()), ...send(append())]).toEqual([]);
    const transcription = { model: 'nosuch' };
    send({ type: 'session.update', session: { audio: { input: { transcription } } } });
    protocol.rejectRoute?.(refuse('model_unknown', { model: 'nosuch' }), NOW);
    expect([...send(append()), ...send(append())]).toMatchObject([{ error: { message } }]);
    send({ type: 'session.update', session: { audio: { input: { transcription: { model: 'reference-en' } } } } });
    send(append());
    expect(kinds()).toEqual(['alive', 'alive', 'route', 'alive', 'route', 'start', 'audio']);
  });

  it.each([undefined, 7, '*', 'a', 'a*b=', 'aGVsbG8', '====', 'ab\u0000d'])(
    'is refused as %j, which is not base64',
    (audio) => {
      const { send } = talk();
      const replies = send({ type: 'input_audio_buffer.append', audio });
      if (audio === 'aGVsbG8') expect(replies).toEqual([]);
      else expect(replies[0]).toMatchObject({ type: 'error', error: { param: 'audio' } });
    },
  );

  it('U5 raises the words of prompt and keywords, which may still change', () => {
    const { send, steps } = talk();
    const update = (transcription: object) =>
      send({ type: 'session.update', session: { audio: { input: { transcription } } } });
    update({ prompt: 'A call about a broken router. Kowalski, Zyrtec', keywords: ['New York'] });
    send(append());
    const options = { interim: true, endpointingMs: 500 };
    const terms = [{ text: 'New York' }, { text: 'Zyrtec' }];
    expect(steps).toContainEqual(
      expect.objectContaining({ type: 'start', request: expect.objectContaining({ options: { ...options, terms } }) }),
    );
    update({ prompt: null });
    expect(steps).toContainEqual({ type: 'options', options: { ...options, terms: [{ text: 'New York' }] } });
    expect(update({ keywords: ['x'.repeat(65)] })[0]).toMatchObject({ error: { code: 'field_invalid' } });
  });

  it('fixes model, language and format; turns may still change', () => {
    const { send, steps } = talk();
    send(append());
    for (const input of [
      { transcription: { model: 'other' } },
      { transcription: { language: 'de' } },
      { format: { type: 'audio/pcmu' } },
    ]) {
      expect(send({ type: 'session.update', session: { audio: { input } } })[0]).toMatchObject({ type: 'error' });
    }
    send({ type: 'session.update', session: { audio: { input: { turn_detection: null } } } });
    expect(steps).toContainEqual({ type: 'options', options: { interim: true, endpointingMs: false } });
  });
});

describe('§3-18 text that is long', () => {
  const audio = sound(1_000);
  const type = 'input_audio_buffer.append';

  it.each([
    ['the type first, as OpenAI writes it', JSON.stringify({ type, audio })],
    ['with blanks, as Python does', JSON.stringify({ type, audio }, undefined, 1)],
    ['behind an id', JSON.stringify({ event_id: 'e'.repeat(512), type, audio })],
    ['the sound first, as LiveKit dumps a class of OpenAI', JSON.stringify({ audio, type })],
    ['the sound, type and id', JSON.stringify({ audio, type, event_id: 'e'.repeat(512) })],
  ])('C10 is taken when it is sound: %s', (_, text) => {
    expect(text.length).toBeGreaterThan(STREAM_CONTROL_CHARACTERS);
    const { send, kinds } = talk();
    expect(send(text)).toEqual([]);
    expect(kinds()).toEqual(['start', 'audio']);
  });

  const nested = '['.repeat(40_000) + ']'.repeat(40_000);
  it.each([
    ['something else', `{"type":"session.update","session":"${audio}"}`],
    ['nested', `{"type":"input_audio_buffer.append","audio":"AAAA","more":${nested}}`],
  ])('C10 is refused unread when it is %s, and the connection stays', (_, text) => {
    const { protocol, send, kinds } = talk();
    const read = vi.spyOn(JSON, 'parse');
    onTestFinished(() => void vi.restoreAllMocks());
    const said = protocol.receive(text, NOW);
    expect(read).not.toHaveBeenCalled();
    expect(said).toMatchObject([{ type: 'reply', frames: [expect.stringContaining('message_too_large')] }]);
    send(append());
    expect(kinds()).toEqual(['start', 'audio']);
  });
});

describe('§3-9 the retired shape', () => {
  it('is refused by name', () => {
    const { send } = talk('?intent=transcription');
    const [error] = send({ type: 'transcription_session.update', session: { input_audio_format: 'pcm16' } });
    expect(error).toMatchObject({ type: 'error', error: { code: 'event_unknown' } });
  });
});

describe('§3-15 the end of a session', () => {
  it('with a refusal: committed items fail, then an error, then our code', () => {
    const { send, protocol } = talk();
    send({ type: 'session.update', session: { audio: { input: { turn_detection: null } } } });
    send(append(1_000));
    const [committed] = send({ type: 'input_audio_buffer.commit' });
    const { frames, code, reason } = protocol.close({ refusal: refuse('pool_lost') }, NOW);
    expect(parse(frames)).toMatchObject([
      {
        type: `${PREFIX}.failed`,
        item_id: committed?.item_id,
        error: { type: 'transcription_error', code: 'pool_lost' },
      },
      { type: 'error', error: { code: 'pool_lost', type: 'server_error', event_id: null } },
    ]);
    expect(code).toBe(4502);
    expect(reason.length).toBeLessThanOrEqual(123);
  });

  it('A21 with the id of the request, also when it never opened', () => {
    const { protocol } = talk();
    protocol.open({ id: 'session', request: 'r-1', now: NOW, expires: NOW });
    const opened = protocol.close({ refusal: refuse('pool_lost') }, NOW);
    expect(parse(opened.frames).at(-1)).toMatchObject({ error: { request_id: 'r-1' } });
    const never = refusedRealtime.close({ refusal: refuse('token_invalid') }, NOW, 'r-2');
    expect(parse(never.frames)).toMatchObject([{ error: { code: 'token_invalid', request_id: 'r-2' } }]);
  });

  it('in order: code 1000', () => {
    expect(talk().protocol.close({ final }, NOW)).toEqual({ frames: [], code: 1000, reason: '' });
  });

  it('C10 only event types that OpenAI documents', () => {
    const { tell } = talk();
    const overflow: SessionEvent = { type: 'overflow', position: 0, bytes: 4_800, seconds: 0.1 };
    expect(tell(overflow, { type: 'moved', agent: 'a' }, { type: 'ending', seconds: 10 })).toEqual([]);
    const { frames, code } = talk().protocol.close({ refusal: refuse('backlog_full') }, NOW);
    expect(parse(frames)).toMatchObject([{ type: 'error', error: { code: 'backlog_full' } }]);
    expect(code).toBe(4429);
  });
});
