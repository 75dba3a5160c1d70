// Every route that opens content at the edge, as a caller meets it whose token demands client sealing.
import { expect, it } from 'vitest';
import { FakeFunctions } from '../../fake/functions.ts';
import { ask, startAgent } from '../../fake/network.ts';
import { openProjectOffice } from '../../fake/project-functions.ts';
import { makeToken } from '../authority.ts';

const PROJECT = '01890a5d-ac96-874b-bcce-b302099a80ff';
const JSON_TYPE = { 'content-type': 'application/json' };
const post = (headers: Record<string, string>, body: BodyInit): RequestInit => ({ method: 'POST', headers, body });
const scope = 'transcribe stream infer uploads projects audit';

function form(): FormData {
  const fields = new FormData();
  fields.append('model', 'm');
  fields.append('file', new Blob([new Uint8Array(2_000)]), 'speech.wav');
  return fields;
}

async function uploadOf(model: string): Promise<string> {
  return new FakeFunctions('eu').row({ model }).id;
}

async function projectOf(model: string): Promise<string> {
  const office = await openProjectOffice('eu');
  office.row({ id: PROJECT, model, status: 'done' });
  return `${PROJECT}/documents/0`;
}

it.each<[string, (model: string) => Promise<[string, RequestInit]> | [string, RequestInit]]>([
  ['a transcript', async (model) => [`/v1/uploads/${await uploadOf(model)}/transcript`, {}]],
  ['spoken sound', async (model) => [`/v1/projects/${await projectOf(model)}/audio`, {}]],
  ['a manifest', async (model) => [`/v1/projects/${await projectOf(model)}/manifest`, {}]],
  ['a transcription', () => ['/v1/audio/transcriptions', post({}, form())]],
  ['a form as upload', () => ['/v1/audio/transcriptions', post({ 'x-auricle-upload': 'true' }, form())]],
  ['a recording', (model) => [`/v1/listen?model=${model}`, post({}, new Uint8Array(2_000))]],
  [
    'a recording with callback',
    (model) => [`/v1/listen?model=${model}&callback=https://hook.test/`, post({}, new Uint8Array(2_000))],
  ],
  ['live sound', (model) => [`/v1/listen?model=${model}`, { headers: { upgrade: 'websocket' } }]],
  ['an inference', (model) => [`/v2/models/${model}/infer`, post(JSON_TYPE, '{"inputs":[]}')]],
  ['a generation', (model) => [`/v2/models/${model}/generate`, post(JSON_TYPE, '{}')]],
])('C4 A21 %s is refused to a token that demands client sealing', async (_, make) => {
  const model = `model-${crypto.randomUUID().slice(0, 8)}`;
  const agent = await startAgent(model);
  const [path, init] = await make(model);
  const authorization = `Bearer ${await makeToken({ scope, sealing: 'client', uploads: 'plain' })}`;
  const answer = await ask(path, { ...init, headers: { ...(init.headers as object), authorization } });
  expect([answer.status, await answer.text()]).toEqual([403, expect.stringContaining('that the client has sealed')]);
  expect(agent.requests).toBe(0);
});
