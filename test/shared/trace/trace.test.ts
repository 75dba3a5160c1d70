import { describe, expect, it } from 'vitest';
import { type encodeSpans, SpanExporter } from '../../../shared/trace/exporter.ts';
import { type EndedSpan, startSpan, type Tracer } from '../../../shared/trace/span.ts';
import { readTraceparent, writeTraceparent } from '../../../shared/trace/traceparent.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const caller = `00-${TRACE}-00f067aa0ba902b7-01`;

describe('R14 traceparent', () => {
  it('R14 is read and written as W3C has it', () => {
    const read = readTraceparent(caller);
    expect(read).toEqual({ traceId: TRACE, spanId: '00f067aa0ba902b7', isSampled: true });
    expect(read && writeTraceparent(read)).toBe(caller);
    expect(readTraceparent(`cc-${TRACE}-00f067aa0ba902b7-00-later`)).toMatchObject({ isSampled: false });
  });

  it.each([
    ['absent', undefined],
    ['of the version ff', `ff-${TRACE}-00f067aa0ba902b7-01`],
    ['with a trace of zeros', `00-${'0'.repeat(32)}-00f067aa0ba902b7-01`],
    ['with a parent of zeros', `00-${TRACE}-${'0'.repeat(16)}-01`],
    ['in capitals', caller.toUpperCase()],
    ['too long', `${caller}-more`],
  ])('R14 is ignored when it is %s', (_, header) => expect(readTraceparent(header)).toBeUndefined());
});

function collect(): { tracer: Tracer; spans: EndedSpan[] } {
  const spans: EndedSpan[] = [];
  let now = 1_000;
  return { spans, tracer: { now: () => now++, record: (span) => spans.push(span) } };
}

describe('R14 spans', () => {
  it('R14 join the trace of the caller, each below the one before', () => {
    const { tracer, spans } = collect();
    const one = startSpan({ name: 'edge', kind: 'server', traceparent: caller }, tracer);
    const two = one?.child('call', 'client');
    two?.end({ a: 1 }, 'pool_lost');
    two?.end();
    one?.end();
    expect(spans.map(({ name, traceId }) => [name, traceId])).toEqual([
      ['call', TRACE],
      ['edge', TRACE],
    ]);
    expect(spans[1]?.parentId).toBe('00f067aa0ba902b7');
    expect(spans[0]).toMatchObject({ parentId: spans[1]?.spanId, failure: 'pool_lost', attributes: { a: 1 } });
  });

  it('R14 pass an unsampled or untraced context on and record nothing', () => {
    const { tracer, spans } = collect();
    const unsampled = caller.replace(/01$/, '00');
    const passed = startSpan({ name: 'a', kind: 'server', traceparent: unsampled }, tracer);
    expect(passed?.child('b', 'client').traceparent).toBe(unsampled);
    passed?.end();
    expect(startSpan({ name: 'a', kind: 'server', traceparent: caller }, undefined)?.traceparent).toBe(caller);
    expect(startSpan({ name: 'a', kind: 'server', traceparent: undefined }, tracer)).toBeUndefined();
    expect(spans).toEqual([]);
  });
});

const span: EndedSpan = {
  ...{ traceId: TRACE, spanId: 'b7ad6b7169203331', isSampled: true, parentId: undefined, name: 'edge' },
  ...{ kind: 'server', began: 1_700_000_000_000, ended: 1_700_000_000_005, failure: 'internal' },
  attributes: { 'http.route': '/v1', ok: true, seconds: 1.5, absent: undefined },
};

function exporter(post: typeof fetch) {
  const lost: string[] = [];
  const made = new SpanExporter({
    ...{ endpoint: 'http://collector.test/', headers: { 'api-key': 'k' }, resource: { 'service.name': 's' } },
    ...{ post, onLost: (why: string) => void lost.push(why) },
  });
  return { made, lost };
}

describe('R14 the exporter', () => {
  it('R14 posts OTLP in JSON to the address of the specification', async () => {
    const posts: [string, RequestInit][] = [];
    const { made } = exporter(async (url, init = {}) => {
      posts.push([String(url), init]);
      return new Response('{}');
    });
    made.add(span);
    await made.flush();
    await made.flush();
    expect(posts).toHaveLength(1);
    const [url, { headers, body }] = posts[0] as [string, RequestInit];
    expect(url).toBe('http://collector.test/v1/traces');
    expect(headers).toEqual({ 'api-key': 'k', 'content-type': 'application/json' });
    const request = JSON.parse(String(body)) as ReturnType<typeof encodeSpans>;
    expect(request.resourceSpans[0]?.scopeSpans[0]?.spans[0]).toEqual({
      ...{ traceId: TRACE, spanId: 'b7ad6b7169203331', name: 'edge', kind: 2 },
      ...{ startTimeUnixNano: '1700000000000000000', endTimeUnixNano: '1700000000005000000' },
      attributes: [
        { key: 'http.route', value: { stringValue: '/v1' } },
        { key: 'ok', value: { boolValue: true } },
        { key: 'seconds', value: { doubleValue: 1.5 } },
      ],
      status: { code: 2, message: 'internal' },
    });
  });

  it('R14 keeps a bounded number of spans and sends them in batches', async () => {
    const sizes: number[] = [];
    const { made } = exporter(async (_, init) => {
      const request = JSON.parse(String(init?.body)) as ReturnType<typeof encodeSpans>;
      sizes.push(request.resourceSpans[0]?.scopeSpans[0]?.spans.length ?? 0);
      return new Response('{}');
    });
    for (let one = 0; one < 3_000; one += 1) made.add(span);
    await made.flush();
    expect(sizes).toEqual([512, 512, 512, 512]);
  });

  it('R14 drops spans while the collector is away, and reports that once', async () => {
    let isAway = true;
    const { made, lost } = exporter(async () => {
      if (isAway) throw new TypeError('refused');
      return new Response('', { status: 503 });
    });
    for (let turn = 0; turn < 3; turn += 1) {
      made.add(span);
      await made.flush();
    }
    isAway = false;
    made.add(span);
    await made.flush();
    expect(lost).toEqual(['TypeError']);
    expect(made.size).toBe(0);
  });

  it('R14 has one post in flight while the collector is silent', async () => {
    let posts = 0;
    const answer = Promise.withResolvers<Response>();
    const { made } = exporter(() => {
      posts += 1;
      return answer.promise;
    });
    made.add(span);
    const first = made.flush();
    made.add(span);
    await made.flush();
    expect(posts).toBe(1);
    answer.resolve(new Response('{}'));
    await first;
  });
});
