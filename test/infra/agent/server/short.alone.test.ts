import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import type { AnswerEvent } from '../../../../shared/speech/transcript.ts';
import { askShort, makeSession, type ShortRequest, sealTo } from '../../../fake/edge.ts';
import { audioForm, formBytes, joinSamples, multipart, silence, voice, wavFile } from '../fixtures.ts';
import { type Bench, patience, startBench } from '../start-agent.ts';

vi.setConfig({ testTimeout: 40_000 });

let bench: Bench;
beforeAll(async () => {
  // A closed port: the collector of traces is away.
  bench = await startBench({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' }, { keepaliveMs: 5 });
});
afterAll(() => bench.stop());
afterEach(() => {
  bench.engine.failures = [];
  bench.engine.gate = undefined;
  bench.engine.say = () => 'hello';
});

const spoken = wavFile(joinSamples(silence(0.5), voice(1), silence(1)));
const ask = (changes: Partial<ShortRequest> = {}) =>
  askShort({
    url: bench.agent.url,
    agent: 'agent-1',
    attestation: bench.agent.keys.current().token,
    edge: bench.edge,
    body: audioForm(spoken),
    contentType: multipart,
    ...changes,
  });

const only = <T extends AnswerEvent['type']>(events: AnswerEvent[], type: T) =>
  events.filter((event): event is Extract<AnswerEvent, { type: T }> => event.type === type);
const refusalOf = (events: AnswerEvent[]) => only(events, 'refusal')[0]?.reason;

describe('R14 a trace through the agent', () => {
  const trace = '4bf92f3577b34da6a3ce929d0e0e4736';
  const called = () => bench.engine.seen.at(-1)?.traceparent;

  it('R14 reaches the engine, and loses no request when the collector is away', async () => {
    for (let turn = 0; turn < 3; turn += 1) {
      const { status, events } = await ask({ traceparent: `00-${trace}-00f067aa0ba902b7-01` });
      expect([status, events.at(-1)?.type]).toEqual([200, 'final']);
      expect(called()).toMatch(new RegExp(`^00-${trace}-(?!00f067aa0ba902b7)[0-9a-f]{16}-01$`));
    }
    const lost = () => bench.lines.filter((line) => line.includes('spans-lost')).length;
    await expect.poll(lost, patience).toBe(1);
  });

  it('R14 passes an unsampled context on, and sends none without a caller that has one', async () => {
    const unsampled = `00-${trace}-00f067aa0ba902b7-00`;
    await ask({ traceparent: unsampled });
    expect(called()).toBe(unsampled);
    await ask();
    expect(called()).toBeUndefined();
  });
});

describe('C5 R1 a sealed unary request, offline', () => {
  it('answers ready, the form, segments in order and a final record', async () => {
    const before = bench.engine.seen.length;
    bench.engine.say = (i) => ['good morning', 'to all'][i - before] ?? '';
    const two = wavFile(joinSamples(silence(0.5), voice(1), silence(1.5), voice(1), silence(0.5)));
    const { status, events, whole } = await ask({ body: audioForm(two) });
    expect(status).toBe(200);
    expect(whole).toBe(true);
    expect(events[0]).toEqual({
      type: 'ready',
      agent: 'agent-1',
      model: 'test-en',
      revision: `sha256:${'0'.repeat(64)}`,
    });
    expect(only(events, 'form')).toEqual([{ type: 'form', fields: { model: ['test-en'] } }]);
    const segments = only(events, 'segment');
    expect(segments.map(({ index, text }) => [index, text])).toEqual([
      [0, 'good morning'],
      [1, 'to all'],
    ]);
    // The second piece of speech starts at 3.0 s of the recording, less the padding.
    expect(segments[1]?.start).toBeGreaterThan(2.6);
    expect(segments[1]?.start).toBeLessThan(3.1);
    expect(events.at(-1)).toMatchObject({ type: 'final', language: 'en', durationSeconds: 4.5, segments: 2 });
  });

  it.each([
    ['vtt', undefined, ['good', 'morning']],
    ['verbose_json', 'word', ['good', 'morning']],
    ['verbose_json', 'segment', []],
    ['json', undefined, []],
  ])('C10 sends words only where the form asks for them: %s, %s', async (format, granularity, words) => {
    bench.engine.say = () => 'good morning';
    const fields = [
      { name: 'model', value: 'test-en' },
      { name: 'response_format', value: format },
      ...(granularity ? [{ name: 'timestamp_granularities[]', value: granularity }] : []),
    ];
    const { events } = await ask({ body: audioForm(spoken, fields) });
    const [segment] = only(events, 'segment');
    expect(segment?.text).toBe('good morning');
    // One that was ready before the form was known has them in any case.
    const known = events.findIndex(({ type }) => type === 'form') < events.findIndex(({ type }) => type === 'segment');
    expect(segment?.words.map(({ word }) => word)).toEqual(known ? words : ['good', 'morning']);
  });

  it('sends the form before the first segment when stream precedes the file', async () => {
    const { events } = await ask({ body: audioForm(spoken, [{ name: 'stream', value: 'true' }]) });
    expect(events.map(({ type }) => type).filter((type) => type !== 'keepalive')).toEqual([
      'ready',
      'form',
      'segment',
      'final',
    ]);
    expect(only(events, 'form')[0]?.fields).toMatchObject({ stream: ['true'] });
    expect(only(events, 'segment')[0]).toMatchObject({ text: 'hello', words: [] });
  });

  it('refuses a field behind the file once the form was sent', async () => {
    const body = formBytes([
      { name: 'stream', value: 'true' },
      { name: 'file', value: spoken, filename: 'a.wav' },
      { name: 'response_format', value: 'text' },
    ]);
    const { events } = await ask({ body });
    expect(events.at(-1)).toMatchObject({
      type: 'refusal',
      reason: 'field_invalid',
      params: { field: 'response_format' },
    });
  });

  it('C7: a copy is answered with its end only', async () => {
    const before = bench.engine.seen.length;
    const { events, whole } = await ask({ head: { mirror: { text: 'hello' } } });
    expect(whole).toBe(true);
    expect(events.map(({ type }) => type).filter((type) => type !== 'keepalive')).toEqual(['ready', 'final']);
    expect(JSON.stringify(events)).not.toContain('hello');
    expect(bench.engine.seen.length).toBe(before + 1);
  });

  it('keeps segments in order when the engine answers out of order', async () => {
    const before = bench.engine.seen.length;
    let open = () => {};
    const first = new Promise<void>((resolve) => {
      open = resolve;
    });
    bench.engine.say = (i) => (i === before ? 'first' : 'second');
    bench.engine.hold = (i) => {
      if (i === before) return first;
      // The second one lets the first one go after its own answer is on its way.
      setImmediate(open);
      return undefined;
    };
    const two = wavFile(joinSamples(voice(1), silence(1), voice(1), silence(1)));
    const { events } = await ask({ body: audioForm(two) });
    expect(only(events, 'segment').map(({ text }) => text)).toEqual(['first', 'second']);
    bench.engine.hold = () => undefined;
  });

  it('passes the class as Triton priority and a timeout (A2)', async () => {
    const before = bench.engine.seen.length;
    await ask({ claims: { class: 'realtime' } });
    await ask({ claims: { class: 'batch' } });
    const priorities = bench.engine.seen.slice(before).map(({ parameters }) => parameters.priority);
    expect(priorities).toEqual([1, 4]);
    expect(bench.engine.seen[before]?.parameters.timeout).toBeGreaterThan(0);
  });

  it('answers silence with an empty transcript and does not ask the engine', async () => {
    const before = bench.engine.seen.length;
    const { events } = await ask({ body: audioForm(wavFile(silence(3))) });
    expect(events.at(-1)).toMatchObject({ type: 'final', segments: 0, speechSeconds: 0, durationSeconds: 3 });
    expect(bench.engine.seen.length).toBe(before);
  });

  it('sends keepalives while the engine works', async () => {
    let open = () => {};
    bench.engine.gate = new Promise((resolve) => {
      open = resolve;
    });
    let beats = 0;
    const { events } = await ask({
      onEvent(event) {
        if (event.type === 'keepalive' && ++beats === 3) open();
      },
    });
    expect(beats).toBeGreaterThanOrEqual(3);
    expect(events.at(-1)?.type).toBe('final');
  });

  it('serves many requests of one set-up, each with keys of its own', async () => {
    const setup = await sealTo(bench.agent.keys.current().token);
    const answers = await Promise.all([1, 2, 3].map(() => ask({ setup })));
    expect(answers.map(({ whole }) => whole)).toEqual([true, true, true]);
  });

  it('still opens what was sealed to the attestation before the last one', async () => {
    const attestation = bench.agent.keys.current().token;
    await bench.agent.keys.renew(Date.now());
    expect(bench.agent.keys.current().token).not.toBe(attestation);
    expect((await ask({ attestation })).whole).toBe(true);
  });
});

it('U3 leaves the name of the model in a form to the edge', async () => {
  const { events } = await ask({ body: audioForm(spoken, [{ name: 'model', value: 'Org/Whisper' }]) });
  expect(only(events, 'form')[0]?.fields.model).toEqual(['Org/Whisper']);
  expect(events.at(-1)?.type).toBe('final');
});

describe('refusals inside the sealed answer', () => {
  const sealed = async (changes: Partial<ShortRequest>) => {
    const { status, events, whole } = await ask(changes);
    expect([status, whole]).toEqual([200, true]);
    expect(events.at(-1)?.type).toBe('refusal');
    return only(events, 'refusal')[0];
  };

  it('record that was changed', async () => {
    const tamper = (record: Uint8Array, index: number) => {
      if (index === 1) record[record.length - 1] = (record.at(-1) ?? 0) ^ 1;
      return record;
    };
    expect(await sealed({ tamper })).toMatchObject({ reason: 'seal_broken' });
  });
  it('record that is missing', async () => {
    const tamper = (record: Uint8Array, index: number) => (index === 1 ? undefined : record);
    expect(await sealed({ tamper })).toMatchObject({ reason: 'seal_broken' });
  });
  it('body that ends without a final record', async () => {
    const tamper = (record: Uint8Array, index: number) => (index === 3 ? undefined : record);
    expect(await sealed({ tamper })).toMatchObject({ reason: 'seal_broken' });
  });
  it('form that is cut', async () => {
    const body = formBytes([{ name: 'file', value: spoken, filename: 'a.wav' }], false);
    expect(await sealed({ body })).toMatchObject({ reason: 'form_invalid' });
  });
  it('body that is no form', async () => {
    expect(await sealed({ contentType: 'audio/wav', body: spoken })).toMatchObject({ reason: 'content_type_wrong' });
  });
  it('form without a file', async () => {
    expect(await sealed({ body: formBytes([{ name: 'model', value: 'test-en' }]) })).toEqual({
      type: 'refusal',
      reason: 'field_missing',
      params: { field: 'file' },
    });
  });
  it('language the model does not know', async () => {
    const fields = [
      { name: 'model', value: 'test-en' },
      { name: 'language', value: 'de' },
    ];
    expect(await sealed({ body: audioForm(spoken, fields) })).toMatchObject({ reason: 'language_unknown' });
  });
  it('field that is wrong', async () => {
    const fields = [
      { name: 'model', value: 'test-en' },
      { name: 'response_format', value: 'docx' },
    ];
    expect(await sealed({ body: audioForm(spoken, fields) })).toMatchObject({
      reason: 'field_invalid',
      params: { field: 'response_format' },
    });
  });
  it.each([
    ['audio_empty', new Uint8Array(0)],
    ['audio_empty', wavFile(new Float32Array(0))],
    ['audio_truncated', wavFile(voice(1), 16_000, 64_000)],
    ['audio_invalid', wavFile(voice(0.1), 0)],
    ['audio_unsupported', wavFile(voice(0.1), 384_000)],
    ['audio_unsupported', new TextEncoder().encode(`%PDF-1.7 ${'x'.repeat(100)}`)],
  ])('audio: %s', async (reason, file) => {
    expect(await sealed({ body: audioForm(file) })).toMatchObject({ reason });
  });
  it.each(['mono-8k.flac', 'mono-8k.oga', 'mono.opus'])('audio_truncated: a cut %s', async (name) => {
    const whole = readFileSync(path.join(import.meta.dirname, '../clips', name));
    const file = whole.subarray(0, whole.length * 0.8);
    expect(await sealed({ body: audioForm(file) })).toMatchObject({ reason: 'audio_truncated' });
  });
  it('engine that fails twice', async () => {
    bench.engine.failures = [500, 500];
    expect(await sealed({})).toMatchObject({ reason: 'engine_failed' });
  });
  it('an engine that fails once is retried', async () => {
    bench.engine.failures = [503];
    expect((await ask()).events.at(-1)?.type).toBe('final');
  });
  it('work that takes longer than its budget', async () => {
    bench.engine.gate = new Promise(() => {});
    expect(await sealed({ claims: { deadlineMs: 100 } })).toMatchObject({ reason: 'deadline_passed' });
  });
});

describe('the surroundings of a request', () => {
  it('cancels the inference when the edge goes away', async () => {
    bench.engine.gate = new Promise(() => {});
    const before = bench.engine.dropped;
    const cancel = new AbortController();
    let seen = bench.engine.seen.length;
    await ask({
      signal: cancel.signal,
      onEvent() {
        if (bench.engine.seen.length > seen) cancel.abort();
      },
    });
    seen = bench.engine.seen.length;
    await expect.poll(() => bench.engine.dropped, patience).toBe(before + 1);
  });

  it('logs reasons and never content', async () => {
    bench.engine.say = () => 'confidential';
    const prompt = [
      { name: 'model', value: 'test-en' },
      { name: 'prompt', value: 'secretprompt' },
      { name: 'response_format', value: 'secretformat' },
    ];
    const { events } = await ask({ body: audioForm(spoken, prompt) });
    expect(refusalOf(events)).toBe('field_invalid');
    const log = bench.lines.join('');
    expect(log).toContain('field_invalid');
    for (const secret of ['confidential', 'secretprompt', 'secretformat', 'eyJ']) expect(log).not.toContain(secret);
  });

  it('exports Prometheus metrics without tenants (R14)', async () => {
    const { agent, edge } = bench;
    const twice = await makeSession({ agent: 'agent-1', attestation: agent.keys.current().token, edge });
    expect([(await ask(twice)).status, (await ask(twice)).reason]).toEqual([200, 'ticket_replayed']);
    const text = await (await fetch(`${bench.agent.url}/metrics`)).text();
    expect(text).toMatch(/auricle_agent_requests_total\{outcome="ok"\} [1-9]/);
    expect(text).toMatch(/auricle_agent_requests_total\{outcome="ticket_replayed"\} 1/);
    expect(text).toContain('auricle_agent_queue_depth{class="realtime"} 0');
    expect(text).toMatch(/auricle_agent_engine_requests_total\{model="test-en"\} [1-9]/);
    expect(text).not.toContain('dev"');
  });

  it('is healthy and ready', async () => {
    const statuses = await Promise.all(['healthz', 'readyz'].map((path) => fetch(`${bench.agent.url}/${path}`)));
    expect(statuses.map(({ status }) => status)).toEqual([200, 200]);
  });
});
