import { runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { describe, expect, it } from 'vitest';
import { Backlog } from '../../edge/audit/backlog.ts';
import { mint } from '../../edge/audit/mint.ts';
import type { Spare } from '../../edge/audit/spare.ts';
import { late, realSurroundings, type Surroundings } from '../../edge/clock.ts';
import type { Bindings } from '../../edge/settings.ts';
import { transcribe } from '../../edge/short/transcribe.ts';
import type { AuditEvent } from '../../shared/audit/event.ts';
import { limits } from '../../shared/limits.ts';
import { makeContext, makeUpload, type SpareDouble } from './context-double.ts';
import type { GateDouble } from './gate-steps.ts';
import { readRefusal, startAgent } from './network.ts';

const unique = () => crypto.randomUUID().slice(0, 8);
const gone = () => Promise.reject(new Error('gone'));
const broken: GateDouble = { take: gone, settle: gone, record: gone };
const namesOf = (events: readonly AuditEvent[]) => events.map(({ type }) => type);

/** A spare that is well, or says what a test makes it say. */
function makeSpare(answer: () => Promise<boolean> = async () => true) {
  const heard: AuditEvent[] = [];
  const spare: SpareDouble = {
    record: async (events) => {
      const said = await answer();
      if (said) heard.push(...events);
      return said;
    },
  };
  return { spare, heard };
}

/** A gate that hears everything. */
function mended() {
  const heard: { readonly id: string | undefined; readonly seconds: number; readonly events: readonly AuditEvent[] }[] =
    [];
  const gate: GateDouble = {
    take: async () => ({ ok: true, value: undefined }) as never,
    settle: async (id, seconds, events) => void heard.push({ id, seconds, events }),
    record: async (events) => void heard.push({ id: undefined, seconds: 0, events }),
  };
  return { gate, heard };
}

async function send(
  claims: Record<string, unknown>,
  gate: GateDouble,
  spare?: SpareDouble,
  surroundings: Surroundings = realSurroundings,
) {
  const model = `model-${unique()}`;
  const agent = await startAgent(model);
  const { context, settled } = makeContext(gate, surroundings, undefined, spare);
  const answer = await transcribe(await makeUpload(model, claims), context);
  const [copy, text] = [answer.clone(), await answer.text()];
  await settled();
  return { answer: copy, text, agent, id: context.id };
}

describe('C9 A1 the gate of a strict tenant does not answer', () => {
  it('its spare has attempt and end before the result leaves, and the gate hears later what it has to book', async () => {
    const tenant = `t-${unique()}`;
    const { spare, heard } = makeSpare();
    const { answer, text, id } = await send({ tenant, audit: 'strict' }, broken, spare);
    expect([answer.status, text]).toEqual([200, expect.stringContaining('general kenobi')]);
    expect(namesOf(heard)).toEqual(['inference.attempt', 'keys', 'route', 'inference.complete']);
    expect(heard.at(-1)).toMatchObject({ tenant, request: id, status: 200 });
    const next = mended();
    await send({ tenant, audit: 'strict' }, next.gate, spare);
    expect(next.heard.filter((one) => one.id === id)).toMatchObject([{ seconds: 8.47, events: [] }]);
  });

  it('the same when it is slow: nobody waits longer than each has time', async () => {
    const waits: number[] = [];
    const slow: Surroundings = {
      ...realSurroundings,
      after: (ms) => {
        if (ms !== limits.auditWaitMs.value) return realSurroundings.after(ms);
        waits.push(ms);
        // The first wait of each pair is that for the gate.
        return waits.length % 2 === 1 ? { rings: Promise.resolve(late), cancel: () => {} } : realSurroundings.after(ms);
      },
    };
    const never = () => new Promise<never>(() => {});
    const { spare, heard } = makeSpare();
    const model = `model-${unique()}`;
    await startAgent(model);
    const { context } = makeContext({ take: never, settle: never, record: never }, slow, undefined, spare);
    const answer = await transcribe(await makeUpload(model, { tenant: `t-${unique()}`, audit: 'strict' }), context);
    expect(answer.status).toBe(200);
    expect(await answer.json()).toMatchObject({ text: 'hello there general kenobi' });
    expect(namesOf(heard)).toContain('inference.complete');
    expect(waits).toHaveLength(4);
  });

  it.each([
    ['fails, too', gone],
    ['has no room', async () => false],
  ])(
    '503 when its spare %s: nothing reaches an agent, and the caller is told when to come back',
    async (_how, answerOfSpare) => {
      const { spare } = makeSpare(answerOfSpare);
      const { answer, agent } = await send({ tenant: `t-${unique()}`, audit: 'strict' }, broken, spare);
      expect(agent.requests).toBe(0);
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
      expect(await readRefusal(answer)).toMatchObject({ status: 503, code: 'audit_unavailable' });
    },
  );

  it('503 when the spare is lost in between: the result is withheld', async () => {
    let calls = 0;
    const { spare } = makeSpare(async () => {
      calls += 1;
      return calls === 1;
    });
    const { answer, text, agent } = await send({ tenant: `t-${unique()}`, audit: 'strict' }, broken, spare);
    expect(agent.requests).toBe(1);
    expect([answer.status, text.includes('kenobi')]).toEqual([503, false]);
  });

  it('allowances are not kept meanwhile, so no more than a few requests go on at once', async () => {
    const { spare } = makeSpare();
    const { context } = makeContext(broken, realSurroundings, undefined, spare);
    const { spares } = context.recorder;
    let entered = 0;
    while (spares.enter()) entered += 1;
    expect(entered).toBe(limits.sparedAtOnce.value);
    const { answer } = await send({ tenant: `t-${unique()}`, audit: 'strict' }, broken, spare);
    expect(answer.status).toBe(503);
    const glass = { tenant: `t-${unique()}`, audit: 'strict', breakglass: true };
    expect((await send(glass, broken, spare)).answer.status).toBe(503);
    for (; entered > 0; entered -= 1) spares.leave();
    expect((await send({ tenant: `t-${unique()}`, audit: 'strict' }, broken, spare)).answer.status).toBe(200);
  });
});

describe('C9 break-glass', () => {
  it('serves a tenant that wants it so, says so at once, and leaves events that say so when its gate is back', async () => {
    const tenant = `t-${unique()}`;
    const claims = { tenant, audit: 'strict', breakglass: true };
    const { spare } = makeSpare(gone);
    const first = await send(claims, broken, spare);
    expect([first.answer.status, first.text]).toEqual([200, expect.stringContaining('general kenobi')]);
    const next = mended();
    await send(claims, next.gate, spare);
    const events = next.heard
      .flatMap((one) => one.events)
      .filter((one) => 'request' in one && one.request === first.id);
    expect(namesOf(events)).toEqual(['inference.attempt', 'breakglass', 'route', 'inference.complete', 'breakglass']);
    expect(events.filter(({ type }) => type === 'breakglass')).toMatchObject([
      { tenant, stage: 'attempt', reason: 'audit_unavailable' },
      { tenant, stage: 'complete', reason: 'audit_unavailable' },
    ]);
  });

  it('is for those whose token says so', async () => {
    const { answer } = await send({ tenant: `t-${unique()}`, audit: 'strict' }, broken, makeSpare(gone).spare);
    expect(answer.status).toBe(503);
  });
});

describe('C9 a buffered tenant is served on trust, within bounds', () => {
  it('until too much waits for its gate: then as a strict one, and on trust again once the gate has heard', async () => {
    const claims = { tenant: `t-${unique()}` };
    expect((await send(claims, broken)).answer.status).toBe(200);
    const { recorder } = makeContext(broken, realSurroundings).context;
    const gap = mint({ type: 'gap', lost: 0, from: 0, to: 0 }, 1);
    const events = Array.from({ length: limits.auditStrainedEvents.value }, () => gap);
    recorder.keep({ ...claims, zones: ['eu'] }, { kind: 'record', events });
    const refused = await send(claims, broken);
    expect([refused.answer.status, refused.agent.requests]).toEqual([503, 0]);
    expect((await send(claims, mended().gate)).answer.status).toBe(200);
    expect((await send(claims, broken)).answer.status).toBe(200);
  });

  it('until too much waits; time runs from the first that was kept, however often it is tried', () => {
    const backlog = new Backlog();
    const gap = mint({ type: 'gap', lost: 0, from: 0, to: 0 }, 1);
    const step = (count: number) => ({ kind: 'record', events: Array.from({ length: count }, () => gap) }) as const;
    backlog.keep('t/eu', [step(limits.auditStrainedEvents.value)], 1_000);
    expect(backlog.isStrained('t/eu', 1_000)).toBe(false);
    backlog.keep('t/eu', [step(1)], 1_000);
    expect(backlog.isStrained('t/eu', 1_000)).toBe(true);
    expect(backlog.isStrained('other/eu', 1_000)).toBe(false);
    backlog.take('t/eu');
    backlog.keep('t/eu', [step(1)], 200_000);
    expect(backlog.isStrained('t/eu', 1_000 + limits.auditStrainedMs.value)).toBe(false);
    expect(backlog.isStrained('t/eu', 1_001 + limits.auditStrainedMs.value)).toBe(true);
    backlog.take('t/eu');
    backlog.heard('t/eu');
    expect(backlog.isStrained('t/eu', 1_001 + limits.auditStrainedMs.value)).toBe(false);
  });
});

describe('C9 C12 the spare of a gate', () => {
  it('keeps events on disk, with a commitment for who asked, and says no when it is full', async () => {
    const { SPARE } = env as unknown as { SPARE: NonNullable<Bindings['SPARE']> };
    const spare = SPARE.getByName(`t-${unique()}/eu`);
    const attempt = (request: string) =>
      mint({ type: 'inference.attempt', tenant: 't', request, action: 'transcribe', subject: 'ann' }, 1);
    expect(await spare.record([attempt('a'), attempt('b')])).toBe(true);
    const { rows } = await spare.outbox(0, 10);
    expect(rows).toMatchObject([{ event: { request: 'a' } }, { event: { request: 'b' } }]);
    expect(JSON.stringify(rows)).not.toContain('ann');
    await runInDurableObject(spare as never, (instance: Spare) => {
      const many = Array.from({ length: limits.auditOutboxEvents.value }, () => attempt('c'));
      expect(instance.record(many)).toBe(false);
    });
    expect((await spare.outbox(0, 10)).rows).toHaveLength(2);
  });
});
