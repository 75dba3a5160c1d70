import { describe, expect, it } from 'vitest';
import { STREAM_REQUESTS_MAX } from '../../../edge/protocol/limits.ts';
import { append, deltas, interim, NOW, PREFIX, parse, segment, talk, types } from './openai-session.ts';

describe('C10 turns that are detected', () => {
  it('become items, with their events in order and deltas that are the transcript', () => {
    const { send, tell } = talk();
    send(append(1_000));
    const told = tell(
      { type: 'speech_started', at: 0.2 },
      interim('the', 0),
      interim('the whether', 1),
      interim('the weather is', 3),
      { type: 'speech_ended', at: 1.2 },
      segment('the weather is fine', 0.2),
    );
    expect(types(told)).toEqual([
      'input_audio_buffer.speech_started',
      `${PREFIX}.delta`,
      `${PREFIX}.delta`,
      'input_audio_buffer.speech_stopped',
      'input_audio_buffer.committed',
      'conversation.item.added',
      'conversation.item.done',
      `${PREFIX}.delta`,
      `${PREFIX}.completed`,
    ]);
    expect(deltas(told)).toEqual(['the', ' weather is', ' fine']);
    expect(told.at(-1)).toMatchObject({
      transcript: 'the weather is fine',
      content_index: 0,
      usage: { type: 'duration', seconds: 1 },
    });
    expect(told[0]).toMatchObject({ audio_start_ms: 200 });
    expect(told[3]).toMatchObject({ audio_end_ms: 1_200 });
    const ids = new Set(told.map((frame) => frame.item_id ?? (frame.item as { id: string }).id));
    expect(ids.size).toBe(1);
  });

  it('R3 name a detected language when they are complete', () => {
    const { send, tell } = talk();
    send(append());
    const spanish = { language: 'es', confidence: 0.97, model: 'reference-es' };
    expect(tell({ type: 'language', ...spanish }, segment('hola')).at(-1)).toMatchObject({ language: 'es' });
  });

  it('have one beginning, however late their words come', () => {
    const { send, tell } = talk();
    send(append(2_000));
    const told = tell(
      { type: 'speech_started', at: 0.2 },
      { type: 'speech_ended', at: 1.2 },
      interim('late words', 1, 0.2),
      segment('late words', 0.2),
    );
    expect(types(told).filter((type) => type.startsWith('input_audio_buffer.'))).toEqual([
      'input_audio_buffer.speech_started',
      'input_audio_buffer.speech_stopped',
      'input_audio_buffer.committed',
    ]);
  });

  it('A6 never sends text as a delta that may still change', () => {
    const { send, tell } = talk();
    send(append());
    const told = tell(interim('wreck a nice', 0), interim('recognise speech', 0), segment('recognise speech'));
    expect(deltas(told)).toEqual(['recognise speech']);
  });

  it('know the one before', () => {
    const { send, tell } = talk();
    send(append(3_000));
    const told = tell(
      { type: 'speech_started', at: 0 },
      segment('one', 0),
      { type: 'speech_started', at: 2 },
      segment('two', 2),
    );
    const committed = told.filter(({ type }) => type === 'input_audio_buffer.committed');
    expect(committed[0]).toMatchObject({ previous_item_id: null });
    expect(committed[1]).toMatchObject({ previous_item_id: committed[0]?.item_id });
  });

  it('have a begin and an end without any from the agent', () => {
    const { send, tell } = talk();
    send(append(3_000));
    const told = tell(segment('cut by its length', 0, 'length'), segment('and the rest', 1));
    const started = told.filter(({ type }) => type === 'input_audio_buffer.speech_started');
    const stopped = told.filter(({ type }) => type === 'input_audio_buffer.speech_stopped');
    expect([started.length, stopped.length]).toEqual([2, 2]);
  });

  it('in which nothing was said are completed without words before the next one', () => {
    const { send, tell } = talk();
    send(append(4_000));
    const told = tell(
      { type: 'speech_started', at: 0.1 },
      { type: 'speech_ended', at: 0.5 },
      { type: 'speech_started', at: 2 },
      segment('words', 2.1),
    );
    const completed = told.filter(({ type }) => type === `${PREFIX}.completed`);
    expect(completed.map(({ transcript }) => transcript)).toEqual(['', 'words']);
  });

  it('in which nothing was said are completed as soon as that is certain', () => {
    const { send, tell, protocol } = talk();
    send(append(4_000));
    tell({ type: 'speech_started', at: 0.1 }, { type: 'speech_ended', at: 0.5 });
    expect(protocol.commit?.(0.4, NOW)).toEqual([]);
    expect(types(parse(protocol.commit?.(0.6, NOW) ?? []))).toEqual([
      'input_audio_buffer.committed',
      'conversation.item.added',
      'conversation.item.done',
      `${PREFIX}.completed`,
    ]);
    expect(protocol.commit?.(0.7, NOW)).toEqual([]);
  });

  it('with logprobs when requested', () => {
    const { send, tell } = talk();
    send({ type: 'session.update', session: { include: ['item.input_audio_transcription.logprobs'] } });
    send(append());
    const told = tell(interim('one two', 1), segment('one two'));
    const joined = told
      .filter(({ type }) => type === `${PREFIX}.delta`)
      .flatMap(({ logprobs }) => logprobs as { token: string; logprob: number }[]);
    expect(joined.map(({ token }) => token).join('')).toBe('one two');
    expect(joined[0]?.logprob).toBeCloseTo(Math.log(0.9));
  });

  it('U3 with times of segments and words when requested', () => {
    const { send, tell } = talk();
    const transcription = { timestamp_granularities: ['segment', 'word'], language: 'english' };
    send({ type: 'session.update', session: { audio: { input: { transcription } } } });
    send(append());
    const completed = tell(segment('one two')).find(({ type }) => type === `${PREFIX}.completed`);
    expect(completed).toMatchObject({
      segments: [{ text: 'one two', start: expect.any(Number) }],
      words: [{ word: 'one' }, { word: 'two' }],
    });
  });

  it('may be cut short by a commit, which is answered even in silence', () => {
    const { send, tell } = talk();
    send(append(1_000));
    send({ type: 'input_audio_buffer.commit' });
    expect(types(tell({ type: 'finalized', id: 1 }))).toEqual([
      'input_audio_buffer.committed',
      'conversation.item.added',
      'conversation.item.done',
      `${PREFIX}.completed`,
    ]);
    send(append(1_000));
    send({ type: 'input_audio_buffer.commit' });
    const told = tell(segment('cut', 1, 'finalize'), { type: 'finalized', id: 2 });
    expect(told.filter(({ type }) => type === `${PREFIX}.completed`)).toHaveLength(1);
  });

  it('cannot be committed again by the client', () => {
    const { send, tell } = talk();
    send(append(1_000));
    tell(segment('all of it', 0));
    expect(send({ type: 'input_audio_buffer.commit' })[0]).toMatchObject({
      error: { code: 'input_audio_buffer_commit_empty' },
    });
  });
});

describe('C10 commits without turns', () => {
  const manual = () => {
    const all = talk();
    all.send({ type: 'session.update', session: { audio: { input: { turn_detection: null } } } });
    return all;
  };

  it('announce the item at once and complete it when everything before was transcribed', () => {
    const { send, tell, steps } = manual();
    send(append(2_000));
    const replies = send({ type: 'input_audio_buffer.commit' });
    expect(types(replies)).toEqual([
      'input_audio_buffer.committed',
      'conversation.item.added',
      'conversation.item.done',
    ]);
    expect(steps).toContainEqual({ type: 'finalize', id: 1 });
    const told = tell(
      segment('first part', 0, 'length'),
      interim('second', 1, 1),
      segment('second part', 1, 'finalize'),
      {
        type: 'finalized',
        id: 1,
      },
    );
    expect(deltas(told).join('')).toBe('first part second part');
    expect(told.at(-1)).toMatchObject({
      type: `${PREFIX}.completed`,
      item_id: replies[0]?.item_id,
      transcript: 'first part second part',
      usage: { type: 'duration', seconds: 2 },
    });
  });

  it('M9: have deltas without spaces between characters of Mandarin', () => {
    const { send, tell } = manual();
    send(append(2_000));
    send({ type: 'input_audio_buffer.commit' });
    const told = tell(segment('今天', 0, 'length'), segment('天气', 1, 'finalize'), { type: 'finalized', id: 1 });
    expect(deltas(told)).toEqual(['今天', '天气']);
    expect(told.at(-1)).toMatchObject({ transcript: '今天天气' });
  });

  it('send no speech events', () => {
    const { send, tell } = manual();
    send(append());
    expect(tell({ type: 'speech_started', at: 0 }, { type: 'speech_ended', at: 1 })).toEqual([]);
  });

  it('keep what is said behind them for the next one', () => {
    const { send, tell } = manual();
    send(append(1_000));
    const [first] = send({ type: 'input_audio_buffer.commit' });
    send(append(1_000));
    const [second] = send({ type: 'input_audio_buffer.commit' });
    const told = tell(segment('one', 0, 'finalize'), { type: 'finalized', id: 1 }, segment('two', 1, 'finalize'), {
      type: 'finalized',
      id: 2,
    });
    const completed = told.filter(({ type }) => type === `${PREFIX}.completed`);
    expect(completed).toMatchObject([
      { item_id: first?.item_id, transcript: 'one' },
      { item_id: second?.item_id, transcript: 'two' },
    ]);
    expect(second).toMatchObject({ previous_item_id: first?.item_id });
  });

  it.each([0, 99])('one of %i ms is refused with the code that clients know', (milliseconds) => {
    const { send, kinds } = manual();
    if (milliseconds > 0) send(append(milliseconds));
    expect(send({ type: 'input_audio_buffer.commit', event_id: 'c' })[0]).toMatchObject({
      type: 'error',
      error: { type: 'invalid_request_error', code: 'input_audio_buffer_commit_empty', event_id: 'c' },
    });
    expect(kinds()).not.toContain('finalize');
  });

  it('come after a clear with nothing to commit', () => {
    const { send, tell, steps } = manual();
    send(append(1_000));
    expect(send({ type: 'input_audio_buffer.clear' })).toEqual([]);
    expect(steps.at(-1)).toEqual({ type: 'clear', id: 1 });
    expect(types(tell({ type: 'cleared', id: 1 }))).toEqual(['input_audio_buffer.cleared']);
    expect(send({ type: 'input_audio_buffer.commit' })[0]).toMatchObject({ type: 'error' });
  });

  it('clear before any sound is answered at once', () => {
    expect(types(manual().send({ type: 'input_audio_buffer.clear' }))).toEqual(['input_audio_buffer.cleared']);
  });

  it('§3-18 unanswered ones are bounded', () => {
    const { send, kinds } = manual();
    send(append());
    for (let i = 0; i < STREAM_REQUESTS_MAX; i++) send({ type: 'input_audio_buffer.clear' });
    expect(send({ type: 'input_audio_buffer.clear' })[0]).toMatchObject({ error: { code: 'frame_invalid' } });
    send(append());
    expect(send({ type: 'input_audio_buffer.commit' })[0]).toMatchObject({ error: { code: 'frame_invalid' } });
    expect(kinds().filter((kind) => kind === 'clear' || kind === 'finalize')).toHaveLength(STREAM_REQUESTS_MAX);
  });
});
