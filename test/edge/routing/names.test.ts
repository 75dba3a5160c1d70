// Names for models, from the signed release map to the agents, in every protocol.
import { env } from 'cloudflare:workers';
import { CompactSign, importJWK } from 'jose';
import { describe, expect, it } from 'vitest';
import { HINTS_BYTES } from '../../../edge/http/caller-body.ts';
import { RELEASE_TYPE } from '../../../shared/registry/release.ts';
import { BUFFERED_BODY_BYTES } from '../../../shared/speech/limits.ts';
import { type FakeAgent, final, segment } from '../../fake/agent.ts';
import { FakeFunctions } from '../../fake/functions.ts';
import { ask, readRefusal, startAgent, upload } from '../../fake/network.ts';
import { eventually } from '../../fake/stream-agent.ts';
import { keys, makeToken } from '../authority.ts';
import { LiveClient, startListener } from '../live-client.ts';

const unique = () => `x${crypto.randomUUID().slice(0, 8)}`;
const bearer = async (tenant: string) => ({ authorization: `Bearer ${await makeToken({ tenant })}` });

/** Publishes names beside those of the map before. */
async function publish(names: Record<string, string>): Promise<void> {
  const { release } = await env.ROSTER.getByName('eu').snapshot();
  const generation = (release?.generation ?? 0) + 1;
  const map = { v: 1, generation, models: {}, names: { ...release?.names, ...names } };
  const signed = await new CompactSign(new TextEncoder().encode(JSON.stringify(map)))
    .setProtectedHeader({ alg: 'ES256', typ: RELEASE_TYPE, kid: 'service-1' })
    .sign(await importJWK(keys.service, 'ES256'));
  const headers = { 'content-type': 'application/json' };
  const told = await ask('/v1/release', { method: 'PUT', headers, body: JSON.stringify({ release: signed }) });
  expect(told.status).toBe(200);
}

/** An agent that names the model of a form which names none, as agents do. */
async function startReader(): Promise<{ model: string; agent: FakeAgent }> {
  const model = unique();
  const agent = await startAgent(model);
  agent.script = async function* (received) {
    const text = Buffer.from(await received.all()).toString('latin1');
    const named = /name="model"\r\n\r\n([^\r]*)/.exec(text)?.[1];
    yield { type: 'form', fields: { model: [named || String(received.head.model)] } };
    yield segment(0, 'hello there');
    yield { ...final(1), model };
  };
  return { model, agent };
}

describe('U3 a name serves as its model', () => {
  it('in a form, and the answer tells the model', async () => {
    const { model, agent } = await startReader();
    const name = `Org/Whisper-${unique()}`;
    await publish({ [name]: model });
    const answer = await upload({ fields: [['model', name]] });
    expect([answer.status, answer.headers.get('x-auricle-model')]).toEqual([200, model]);
    expect(agent.seen[0]?.head).toMatchObject({ model });
    const other = await upload({ fields: [['model', unique()]] });
    expect(await readRefusal(other)).toMatchObject({ status: 404, code: 'model_unknown' });
  });

  it('that the tenant has, before one of the fleet', async () => {
    const [fleet, own] = [await startReader(), await startReader()];
    const name = unique();
    await publish({ [name]: fleet.model, [`acme ${name}`]: own.model });
    expect((await upload({ fields: [['model', name]] })).headers.get('x-auricle-model')).toBe(own.model);
    const token = await makeToken({ tenant: unique() });
    expect((await upload({ token, fields: [['model', name]] })).headers.get('x-auricle-model')).toBe(fleet.model);
  });

  it('in Deepgram’s recordings, whose answer names the model', async () => {
    const { model } = await startReader();
    const [tenant, name] = [unique(), unique()];
    await publish({ [name]: model, [`${tenant} default`]: model });
    for (const query of [`?model=${name}`, '']) {
      const answer = await ask(`/v1/listen${query}`, { method: 'POST', headers: await bearer(tenant), body: 'sound' });
      const { metadata } = (await answer.json()) as { metadata: { model_info: Record<string, { name: string }> } };
      expect(Object.values(metadata.model_info).map((info) => info.name)).toEqual([model]);
    }
  });

  it('in live sessions of Deepgram and OpenAI, also by default', async () => {
    const { name: model, agentStreams } = await startListener();
    const [tenant, name] = [unique(), unique()];
    await publish({ [name]: model, [`${tenant} default`]: model });
    const update = { type: 'session.update', session: { audio: { input: { transcription: { model: name } } } } };
    const append = { type: 'input_audio_buffer.append', audio: btoa('hello') };
    for (const [at, query] of [`?model=${name}&encoding=mulaw`, '?encoding=mulaw'].entries()) {
      const client = await LiveClient.connect(`/v1/listen${query}`, await bearer(tenant));
      await eventually(() => agentStreams[at]?.opened);
      client.close();
    }
    const named = await LiveClient.connect('/v1/realtime?intent=transcription', await bearer(tenant));
    expect(await named.waitFor('session.created')).toMatchObject({
      session: { audio: { input: { transcription: { model } } } },
    });
    named.send(update).send(append);
    await eventually(() => agentStreams[2]?.opened);
    named.close();
    expect(agentStreams.map(({ opened }) => opened?.model)).toEqual([model, model, model]);
  });

  it('in KServe, uploads, projects and lists of models', async () => {
    const { model } = await startReader();
    const voice = unique();
    await startAgent(voice, { task: 'synthesize' });
    const [tenant, name, speaker] = [unique(), unique(), unique()];
    await publish({ [name]: model, [`${tenant} ${speaker}`]: voice });
    const headers = await bearer(tenant);
    expect((await ask(`/v2/models/${name}/ready`, { headers })).status).toBe(200);
    expect(await (await ask(`/v1/models/${name}`, { headers })).json()).toMatchObject({ id: name, root: model });
    const listed = (await (await ask('/v1/models', { headers })).json()) as { data: { id: string; root?: string }[] };
    expect(listed.data.find(({ id }) => id === speaker)?.root).toBe(voice);
    expect((await ask(`/v1/models/${speaker}`, { headers: await bearer(unique()) })).status).toBe(404);
    const eu = new FakeFunctions('eu');
    const send = (path: string, body: object) =>
      ask(path, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
    await send('/v1/uploads', { model: name, zone: 'eu' });
    await send('/v1/projects', { model: speaker, zone: 'eu', sealed: true, documents: [{}] });
    expect(eu.requests.map(({ body }) => (body as { model: string }).model)).toEqual([model, voice]);
  });
});

describe('U3 a form with the file first', () => {
  it('is searched for its model up to the bound', async () => {
    const { model } = await startReader();
    const token = await makeToken({ tenant: unique() });
    const send = (bytes: number) => upload({ token, file: new Uint8Array(bytes), fields: [['model', model]] });
    expect((await send(2 * BUFFERED_BODY_BYTES)).status).toBe(200);
    expect(await readRefusal(await send(HINTS_BYTES))).toMatchObject({ code: 'hints_missing' });
  });

  it('is served by the default at any size, or refused for another model', async () => {
    const { model } = await startReader();
    const { model: second } = await startReader();
    const [tenant, name] = [unique(), unique()];
    await publish({ [name]: model, [`${tenant} default`]: model });
    const token = await makeToken({ tenant });
    const send = (fields: [string, string][]) => upload({ token, file: new Uint8Array(HINTS_BYTES), fields });
    expect((await send([])).headers.get('x-auricle-model')).toBe(model);
    expect((await send([['model', name]])).status).toBe(200);
    expect(await readRefusal(await send([['model', second]]))).toMatchObject({ code: 'hints_conflict' });
    expect(await readRefusal(await upload({ fields: [] }))).toMatchObject({ code: 'field_missing' });
  });
});

describe('U3 operators set names', () => {
  const set = async (body: object, scope = 'operate') =>
    ask('/v1/names', {
      method: 'POST',
      headers: { authorization: `Bearer ${await makeToken({ scope })}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });

  it('for models that agents serve', async () => {
    const { model } = await startReader();
    const eu = new FakeFunctions('eu');
    eu.plain = () => Response.json({ name: 'whisper-1', model, since: 1 });
    expect(await (await set({ name: 'whisper-1', model })).json()).toEqual({ name: 'whisper-1', model, since: 1 });
    expect(eu.requests.map(({ line, claims }) => [line, claims.operate])).toEqual([['POST /api/names', true]]);
    expect(await readRefusal(await set({ name: 'whisper-1', model: unique() }))).toMatchObject({
      code: 'model_unknown',
    });
    expect(await readRefusal(await set({ name: 'whisper-1' }))).toMatchObject({ code: 'field_invalid' });
    expect(await readRefusal(await set({ name: 'whisper-1', model }, 'models'))).toMatchObject({
      code: 'scope_missing',
    });
    expect(eu.requests).toHaveLength(1);
  });
});
