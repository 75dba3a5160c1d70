import { describe, expect, it } from 'vitest';
import { SNAPSHOT_AGE_MS } from '../../../edge/routing/snapshot.ts';
import type { Result } from '../../../shared/result.ts';
import { BODY_BYTES } from '../../../shared/speech/limits.ts';
import { readWavFormat } from '../../../shared/speech/wav.ts';
import { segment } from '../../fake/agent.ts';
import { askDirectly, passTime, readRefusal, startAgent, upload } from '../../fake/network.ts';
import { makeToken } from '../authority.ts';
import { type Advice, expectRefusal } from '../expect-refusal.ts';

const model = () => `model-${crypto.randomUUID().slice(0, 8)}`;

const POOL_LOST =
  'The connection to the pool was lost before the transcript was complete. The request can be sent again.';
const noRate = parametersOf(readWavFormat(new Uint8Array(16)));

describe('A21 C6 refusals from an agent', () => {
  const rows: [string, Record<string, string | number>, number, Advice, string][] = [
    ['audio_empty', {}, 400, 'never', 'The file is empty.'],
    ['audio_truncated', {}, 400, 'never', 'The audio file ends before its header says it should.'],
    // The rules are those of the agent: its own decision about a file, where it can be had here.
    ['audio_invalid', noRate, 400, 'never', 'The audio file cannot be decoded: its header says 0 Hz.'],
    ['audio_too_long', { limit: 14_400 }, 413, 'never', 'The recording is longer than 14400 seconds.'],
    [
      'audio_unsupported',
      {},
      415,
      'never',
      'This audio format is not supported. Send WAV, AIFF, FLAC, MP3, Ogg or WebM (Opus, Vorbis), MP4 or M4A (AAC-LC, Opus), AAC (ADTS) or AMR, 8 to 192 kHz, at most 8 channels.',
    ],
    ['engine_failed', {}, 502, 'soon', 'The recogniser failed on this request.'],
    ['pool_busy', {}, 503, 'soon', 'The pool is busy.'],
    ['deadline_passed', {}, 504, 'soon', 'The request was not finished in time.'],
  ];
  it.each(rows)('%s reaches the caller', async (reason, params, status, advice, message) => {
    const name = model();
    const agent = await startAgent(name);
    agent.script = async function* (received) {
      await received.all();
      yield { type: 'refusal', reason: reason as 'audio_empty', params };
    };
    const answer = await upload({ fields: [['model', name]] });
    await expectRefusal(answer, status, reason, advice, message);
  });

  it.each(['ticket_invalid', 'ticket_replayed', 'misdirected', 'seal_broken', 'nonsense'])(
    'plain %s becomes a lost pool',
    async (reason) => {
      const name = model();
      const agent = await startAgent(name);
      agent.plain = () => Response.json({ reason }, { status: 403 });
      const answer = await upload({ fields: [['model', name]] });
      await expectRefusal(answer, 502, 'pool_lost', 'soon', POOL_LOST);
    },
  );

  it('an answer that ends without final', async () => {
    const name = model();
    const agent = await startAgent(name);
    agent.script = async function* (received) {
      await received.all();
      yield { type: 'keepalive' };
    };
    await expectRefusal(await upload({ fields: [['model', name]] }), 502, 'pool_lost', 'soon', POOL_LOST);
  });

  it('a connection that breaks in the middle', async () => {
    const name = model();
    const agent = await startAgent(name);
    agent.script = async function* (received) {
      await received.all();
      yield segment(0, 'hello there');
      yield 'cut';
    };
    await expectRefusal(await upload({ fields: [['model', name]] }), 502, 'pool_lost', 'soon', POOL_LOST);
  });

  it('carries the id of the request when it comes within a stream', async () => {
    const name = model();
    const agent = await startAgent(name);
    agent.script = async function* (received) {
      await received.all();
      yield { type: 'form', fields: { model: [name], stream: ['true'] } };
      yield segment(0, 'hello there');
      yield { type: 'refusal', reason: 'engine_failed', params: {} };
    };
    const form: [string, string][] = [
      ['model', name],
      ['stream', 'true'],
    ];
    const answer = await upload({ fields: form });
    const frames = (await answer.text()).trim().split('\n\n');
    const error = { code: 'engine_failed', request_id: answer.headers.get('x-request-id') };
    expect(JSON.parse(frames.at(-1)?.replace('data: ', '') ?? '')).toMatchObject({ error });
    expect(error.request_id).toMatch(/^[\w-]{16,}$/);
  });

  it('a body that turns out too large', async () => {
    const name = model();
    const agent = await startAgent(name);
    agent.script = async function* (received) {
      await received.all();
      yield { type: 'keepalive' };
    };
    let left = BODY_BYTES / 2 ** 20 + 1;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        left -= 1;
        if (left < 0) controller.close();
        else controller.enqueue(new Uint8Array(2 ** 20));
      },
    });
    const { answer, settled } = await askDirectly(
      new Request('http://edge.test/v1/audio/transcriptions', {
        method: 'POST',
        headers: {
          authorization: `Bearer ${await makeToken()}`,
          'content-type': 'multipart/form-data; boundary=X',
          'x-auricle-model': name,
        },
        body,
        ...({ duplex: 'half' } as object),
      }),
    );
    const message = 'The body is over 134217728 bytes. Split it into several requests.';
    await expectRefusal(answer, 413, 'body_too_large', 'never', message);
    await settled();
  });

  it('a form that differs from the header', async () => {
    const name = model();
    await startAgent(name);
    const answer = await upload({ headers: { 'x-auricle-model': name }, fields: [['model', 'other']] });
    const message = 'The field "model" of the body differs from the one in the header or query, or from the default.';
    await expectRefusal(answer, 400, 'hints_conflict', 'never', message);
  });

  it.each([
    ['response_format', 'diarized_json'],
    ['response_format', 'docx'],
    ['temperature', '3'],
    ['include[]', 'speakers'],
  ])('a form with %s=%s', async (field, value) => {
    const name = model();
    await startAgent(name);
    const answer = await upload({
      fields: [
        ['model', name],
        [field, value],
      ],
    });
    expect(await readRefusal(answer)).toMatchObject({ status: 400, code: 'field_invalid' });
  });
});

function parametersOf(result: Result<unknown>): Record<string, string | number> {
  if (result.ok) throw new Error('was not refused');
  return { ...result.refusal.params };
}

describe('C6 an agent whose queue of class default is full', () => {
  it('gets no recording of that class', async () => {
    const name = model();
    const agent = await startAgent(name);
    await agent.send(agent.report({ full: ['default', 'batch'] }));
    await agent.settled();
    passTime(SNAPSHOT_AGE_MS);
    const answer = await upload({ headers: { 'x-auricle-model': name } });
    await expectRefusal(answer, 503, 'pool_busy', 'soon', 'The pool is busy.');
    expect(agent.requests).toBe(0);
  });
});
