// The release map on its way from the functions into every choice of the edge.
import { env } from 'cloudflare:workers';
import { beforeEach, describe, expect, it } from 'vitest';
import type { z } from 'zod';
import type { knownReleases } from '../../../edge/routing/release.ts';
import type { ModelRelease, ReleaseMap } from '../../../shared/registry/release.ts';
import { BUFFERED_BODY_BYTES } from '../../../shared/speech/limits.ts';
import { final } from '../../fake/agent.ts';
import { ask, readRefusal, startAgent, upload } from '../../fake/network.ts';
import { largestMap } from '../../shared/registry/releases.ts';
import { keys, makeToken } from '../authority.ts';
import { nextGeneration, publish, signRelease } from '../publish-release.ts';

const [A, B] = ['b', 'c'].map((digit) => `sha256:${digit.repeat(64)}`) as [string, string];

let generation = 0;
let model = '';
beforeEach(() => {
  generation = nextGeneration();
  model = `model-${crypto.randomUUID().slice(0, 8)}`;
});

const map = (one: ModelRelease, at = generation): ReleaseMap => ({ v: 1, generation: at, models: { [model]: one } });

const transcribe = async (times: number) => {
  for (let time = 0; time < times; time += 1) {
    expect((await upload({ fields: [['model', model]] })).status).toBe(200);
  }
};

describe('C7: the release map at the edge', () => {
  it('moves the next request to another revision and back', async () => {
    const [one, two] = [await startAgent(model, { revision: A }), await startAgent(model, { revision: B })];
    expect(await (await publish(await signRelease(map({ stable: A })))).json()).toEqual({ generation });
    await transcribe(6);
    expect([one.requests, two.requests]).toEqual([6, 0]);
    await publish(await signRelease(map({ stable: B, before: A }, generation + 1)));
    await transcribe(6);
    expect([one.requests, two.requests]).toEqual([6, 6]);
    await publish(await signRelease(map({ stable: A, before: B }, generation + 2)));
    await transcribe(6);
    expect([one.requests, two.requests]).toEqual([12, 6]);
  });

  it('A15: each recording is its own session, as the canary’s statistics assume', async () => {
    const [stable, canary] = [await startAgent(model, { revision: A }), await startAgent(model, { revision: B })];
    await publish(await signRelease(map({ stable: A, canary: { revision: B, share: 0.5 } })));
    await transcribe(60);
    expect(Math.min(stable.requests, canary.requests)).toBeGreaterThan(5);
    expect(stable.requests + canary.requests).toBe(60);
  });

  it('a repeated older one changes nothing, and every zone has it', async () => {
    await publish(await signRelease(map({ stable: B }, generation + 5)));
    expect(await (await publish(await signRelease(map({ stable: A })))).json()).toEqual({ generation: generation + 5 });
    for (const zone of ['eu', 'us']) {
      const { release } = await env.ROSTER.getByName(zone).snapshot();
      expect(release?.models[model]).toEqual({ stable: B });
    }
    const headers = { authorization: `Bearer ${await makeToken({ scope: 'operate' })}` };
    const shown = (await (await ask('/v1/release', { headers })).json()) as z.infer<typeof knownReleases>;
    expect(shown.zones).toHaveLength(2);
    for (const { generation: known, models } of shown.zones) {
      expect([known, models[model]]).toEqual([generation + 5, { stable: B }]);
    }
    expect((await ask('/v1/release')).status).toBe(401);
  });

  /** One that answers, and one on trial that gets a copy of everything. */
  const tryOut = async () => {
    const both = [await startAgent(model, { revision: A }), await startAgent(model, { revision: B })] as const;
    await publish(await signRelease(map({ stable: A, grey: { revisions: [B], share: 1 } })));
    return both;
  };

  /** A recording is served, whatever becomes of its copy. */
  async function serve(token: string, file?: Uint8Array<ArrayBuffer>) {
    const headers = { 'x-auricle-model': model };
    const answer = await upload({ token, fields: [['model', model]], headers, ...(file && { file }) });
    expect(answer.status).toBe(200);
    expect(await answer.json()).toMatchObject({ text: 'hello there general kenobi' });
  }

  const newTenant = () => `t-${crypto.randomUUID().slice(0, 8)}`;

  /** Returns the agents of a tenant's requests once `ended` requests have ended. */
  async function routesOf(tenant: string, ended: number) {
    const headers = { authorization: `Bearer ${await makeToken({ tenant: 'ops', scope: 'operate' })}` };
    const events = async () => {
      const { rows } = (await (await ask(`/v1/audit/outbox?tenant=${tenant}`, { headers })).json()) as {
        rows: { event: { type: string; agent?: string; outcome?: string } }[];
      };
      return rows.map(({ event }) => event);
    };
    await expect
      .poll(async () => (await events()).filter(({ type }) => type === 'inference.complete').length)
      .toBe(ended);
    return (await events()).filter(({ type }) => type === 'route');
  }

  it.each(['buffered', 'strict'])(
    'a copy goes to the grey revision with the served text, recorded: %s',
    async (audit) => {
      const [one, two] = await tryOut();
      const tenant = newTenant();
      const token = await makeToken({ tenant, audit });
      // The other agent's answers have no effect.
      two.plain = () => new Response('broken', { status: 500 });
      await serve(token);
      await expect.poll(() => two.requests).toBe(1);
      two.plain = undefined;
      two.script = async function* (received) {
        await received.all();
        yield final(0);
      };
      await serve(token);
      await expect.poll(() => two.seen.length).toBe(1);
      expect([one.requests, two.requests]).toEqual([2, 2]);
      const [seen] = two.seen;
      expect(seen?.head).toMatchObject({ task: 'transcribe', model, mirror: { text: 'hello there general kenobi' } });
      expect(seen?.ticket).toMatchObject({ class: 'batch', tenant });
      expect(one.seen.some(({ head }) => 'mirror' in head)).toBe(false);
      const routes = await routesOf(tenant, 2);
      expect(routes.map(({ agent, outcome }) => [agent, outcome])).toEqual([
        [one.name, 'served'],
        [two.name, 'mirrored'],
        [one.name, 'served'],
        [two.name, 'mirrored'],
      ]);
    },
  );

  it('no copy for tenants that forbid it, nor of what is not held', async () => {
    const [one] = await tryOut();
    const [forbids, sendsMuch] = [newTenant(), newTenant()];
    await serve(await makeToken({ tenant: forbids, mirror: 'forbidden' }));
    await serve(await makeToken({ tenant: sendsMuch }), new Uint8Array(BUFFERED_BODY_BYTES + 1));
    // It is on record before it leaves.
    for (const tenant of [forbids, sendsMuch]) {
      expect((await routesOf(tenant, 1)).map(({ agent, outcome }) => [agent, outcome])).toEqual([[one.name, 'served']]);
    }
  });

  it('the largest that there can be is taken', async () => {
    expect(await (await publish(await signRelease(largestMap(generation)))).json()).toEqual({ generation });
  });

  it('is believed by its signature only', async () => {
    const good = map({ stable: A });
    const bent = (await signRelease(good)).replace(
      /\.[^.]+\./,
      `.${btoa(JSON.stringify(map({ stable: B }))).replaceAll('=', '')}.`,
    );
    for (const release of [
      await signRelease(good, keys.grant),
      await signRelease(good, keys.service, 'JWT'),
      bent,
      'nothing',
    ]) {
      expect(await readRefusal(await publish(release))).toMatchObject({ status: 401, code: 'token_invalid' });
    }
    expect(await readRefusal(await publish(await signRelease({ ...good, v: 2 })))).toMatchObject({
      code: 'token_invalid',
    });
    const { release } = await env.ROSTER.getByName('eu').snapshot();
    expect(release?.models[model]).toBeUndefined();
  });
});
