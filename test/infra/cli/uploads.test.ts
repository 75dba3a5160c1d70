// `auricle uploads` against an edge in memory.
import { describe, expect, it } from 'vitest';
import { wrong } from '../../../infra/cli/answer.ts';
import { readArguments } from '../../../infra/cli/arguments.ts';
import type { UploadEnv } from '../../../infra/cli/jobs/upload-env.ts';
import { uploads } from '../../../infra/cli/jobs/uploads.ts';

const ID = '01890a5d-ac96-874b-bcce-b302099a80ff';
const WAITING = '01890a5d-ac96-874b-bcce-b302099a8001';
const state = (status: string) => ({ id: ID, status, seq: 1, pieces: { total: 1, done: 1 } });

async function auricle(...words: string[]) {
  const asked: string[] = [];
  const world: UploadEnv = {
    fetch: async (input, init) => {
      const url = new URL(String(input));
      asked.push(`${init?.method ?? 'GET'} ${url.pathname}${url.search}`);
      if (url.pathname.endsWith('/events')) {
        return new Response(`id: 1\nevent: end\ndata: ${JSON.stringify(state('done'))}\n\n`);
      }
      if (url.pathname.endsWith('/transcript')) return new Response('00:00 hello\n');
      if (url.pathname === `/v1/uploads/${WAITING}`)
        return Response.json({
          ...state('admitted'),
          waiting: { for: 'pool', since: '2026-01-01T00:00:00Z' },
          callback: 'pending',
          callback_attempts: 2,
        });
      if (url.pathname !== '/v1/uploads') return Response.json(state('cancelled'), { status: 202 });
      return Response.json({ data: [{ ...state('done'), created: '2026-01-01T00:00:00Z', filename: 'call.wav' }] });
    },
    now: Date.now,
    pause: async () => {},
    folder: '/nowhere',
    print: () => {},
  };
  const given = readArguments(['uploads', '--edge', 'http://edge.test', ...words]);
  if ('problem' in given) return { answer: wrong(given.problem), asked };
  return { answer: await uploads(given, { authorization: 'Bearer t' }, world), asked };
}

describe('C11 auricle uploads', () => {
  it('lists them', async () => {
    const { answer, asked } = await auricle();
    expect(answer).toMatchObject({ exit: 0, text: `${ID}  2026-01-01T00:00:00Z  done       call.wav` });
    expect(asked).toEqual(['GET /v1/uploads']);
  });

  it.each([
    ['status', `GET /v1/uploads/${ID}`],
    ['cancel', `DELETE /v1/uploads/${ID}`],
    ['rerun', `POST /v1/uploads/${ID}/rerun`],
  ])('%s asks for one', async (what, line) => {
    const { answer, asked } = await auricle(what, ID);
    expect(answer).toMatchObject({ exit: 0, text: `${ID}: cancelled` });
    expect(asked).toEqual([line]);
  });

  it('T4 status says what an upload waits for and since when', async () => {
    const { answer } = await auricle('status', WAITING);
    const words = 'waiting for pool since 2026-01-01T00:00:00Z, callback pending after 2 attempts';
    expect(answer).toMatchObject({ text: `${ID}: admitted, ${words}` });
  });

  it('fetches the transcript of an earlier upload', async () => {
    const { answer, asked } = await auricle('wait', ID, '--format', 'srt');
    expect(answer).toMatchObject({ exit: 0, text: '00:00 hello' });
    expect(asked).toEqual([`GET /v1/uploads/${ID}/events`, `GET /v1/uploads/${ID}/transcript?format=srt`]);
  });

  it.each([
    [['status']],
    [['status', '']],
    [['status', ID, 'more']],
    [['burn', ID]],
    [['toString', ID]],
    [['wait', ID, '--format', 'doc']],
  ])('%j is refused before any request', async (words) => {
    const { answer, asked } = await auricle(...words);
    expect([answer.exit, asked]).toEqual([2, []]);
  });
});
