import { readFileSync } from 'node:fs';
import path from 'node:path';
import { BlobServiceClient } from '@azure/storage-blob';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { commandLine } from '../../infra/cli/command-line.ts';
import { storageConnection } from '../../infra/local/plan.ts';
import { ROOT } from '../../infra/local/root.ts';
import { openJudge } from '../../shared/audit/judge.ts';
import { readPolicy } from '../../shared/audit/policy.ts';
import { readReceipt, verifyReceipt } from '../../shared/audit/receipt.ts';
import { readEntries } from './audit-record.ts';
import { type Running, run } from './running.ts';

/** All but the pool of the zone in which nothing is transcribed. */
const PARTS = ['blob', 'sqs', 'functions', 'release', 'edge', 'engine-aks-westeurope', 'agent-aks-westeurope'];

let running: Running;
beforeAll(async () => {
  running = await run({ parts: PARTS });
});
afterAll(() => running?.end());

/** Bound on the publication of an event, ms: seconds, on a busy machine. */
const PUBLISHED_MS_MAX = 30_000;

/** The command line as an operator runs it, in this process. */
async function auricle(...words: string[]): Promise<{ exit: number; value: Record<string, unknown> }> {
  const { url, token } = running.stack;
  process.env.AURICLE_AUDIT = path.join(running.state, 'seen');
  const { exit, out, err } = await commandLine([...words, '--json', '--edge', url, '--token', token], {});
  return { exit, value: JSON.parse(out || err) };
}

async function transcribe(): Promise<string> {
  const form = new FormData();
  form.append('model', 'reference-en');
  form.append('file', new Blob([readFileSync(path.join(ROOT, 'test/clips/number.wav'))]), 'number.wav');
  const { url, token } = running.stack;
  const headers = { authorization: `Bearer ${token}` };
  const answer = await fetch(`${url}/v1/audio/transcriptions`, { method: 'POST', headers, body: form });
  expect(answer.status).toBe(200);
  return answer.headers.get('x-request-id') ?? '';
}

/** Returns the types of a request's leaves, once its end is among them. */
async function typesOf(request: string): Promise<string[]> {
  const { url, token } = running.stack;
  let types: string[] = [];
  await expect
    .poll(
      async () => {
        const entries = await readEntries(url, token, 'eu').catch(() => []);
        const leaves = entries.map((entry) => JSON.parse(entry) as { req?: string; type: string });
        types = leaves.filter(({ req }) => req === request).map(({ type }) => type);
        return types;
      },
      { timeout: PUBLISHED_MS_MAX, interval: 200 },
    )
    .toContain('inference.complete');
  return types;
}

describe('C9 C12 A21 the audit record', () => {
  it('a transcription is in the verified log without its words', {
    timeout: 2 * PUBLISHED_MS_MAX,
  }, async () => {
    const request = await transcribe();
    const types = await typesOf(request);
    expect(types[0]).toBe('inference.attempt');
    expect(types).toContain('route');
    const shown = await auricle('audit', 'show', request, '--zone', 'eu');
    expect(shown.exit).toBe(0);
    const entries = shown.value.entries as { leaf: object; shown?: Record<string, unknown> }[];
    expect(JSON.stringify(entries)).not.toMatch(/account number|seven/);
    expect(JSON.stringify(entries.map(({ leaf }) => leaf))).not.toMatch(/"subject":"c1:[^"]*"/);
    // The caller is an auditor of its tenant and may see hidden values.
    expect(entries.at(-1)?.shown).toMatchObject({ subject: expect.stringMatching(/^c1:/) });
    // The local stack has one witness, which cosigns shortly after the checkpoint.
    await expect
      .poll(() => auricle('audit', 'verify', '--zone', 'eu'), { timeout: PUBLISHED_MS_MAX })
      .toMatchObject({ exit: 0, value: { verdict: 'witnessed' } });
    const { url, token } = running.stack;
    const headers = { authorization: `Bearer ${token}` };
    await expect
      .poll(
        async () => {
          const page = await (await fetch(`${url}/v1/audit/outbox?tenant=dev`, { headers })).json();
          const { rows } = page as { rows: { event: { type: string } }[] };
          // Reads are recorded as well.
          return rows.filter(({ event }) => event.type !== 'access.audit').length;
        },
        { timeout: PUBLISHED_MS_MAX, interval: 200 },
      )
      .toBe(0);
  });

  it('A21 the doctor finds a complete record and current outboxes', async () => {
    const seen = await auricle('audit', 'doctor');
    const { ok, checks } = seen.value as { ok: boolean; checks: { zone: string; check: string; outcome: string }[] };
    expect(checks.filter(({ outcome }) => outcome === 'fail')).toEqual([]);
    expect([ok, seen.exit]).toEqual([true, 0]);
    expect(new Set(checks.map(({ zone }) => zone))).toEqual(new Set(['eu', 'us']));
    expect(checks.map(({ check }) => check)).toContain('outbox of the roster');
  });

  it('operators read entries, auditors hashes, others nothing', async () => {
    const { url } = running.stack;
    const year = new Date().getUTCFullYear();
    const statusOf = async (scope: string, file: string) => {
      const headers = { authorization: `Bearer ${await running.mint({ scope })}` };
      return (await fetch(`${url}/v1/audit/log/eu/${year}/${file}`, { headers })).status;
    };
    expect(await statusOf('audit', 'checkpoint')).toBe(200);
    expect(await statusOf('audit', 'tile/entries/000')).toBe(403);
    expect(await statusOf('transcribe', 'checkpoint')).toBe(403);
    for (const file of ['state', 'wal/1', 'receipt/01', 'receipt/999999', 'tile/0/..%2f000', 'tile/0/999']) {
      expect(await statusOf('operate', file), file).toBe(404);
    }
  });

  it('every log is listed with its size', async () => {
    const { data } = (await auricle('audit', 'logs')).value as {
      data: { zone: string; size?: number; state: string }[];
    };
    expect(data.map(({ zone, state }) => `${zone} ${state}`)).toEqual(['eu open', 'us open']);
    for (const { zone, size } of data) expect(size, zone).toBeGreaterThan(0);
  });

  it('every entry has a receipt signed by log and witness', async () => {
    const { url, token } = running.stack;
    const base = `${url}/v1/audit/log/eu/${new Date().getUTCFullYear()}`;
    const headers = { authorization: `Bearer ${token}` };
    const policy = readPolicy(new Uint8Array(await (await fetch(`${base}/policy`, { headers })).arrayBuffer()));
    if (!policy.ok) throw new Error(policy.refusal);
    const judge = await openJudge(policy.value);
    const entry = new TextEncoder().encode((await readEntries(url, token, 'eu'))[0]);
    const ask = async () => {
      const receipt = readReceipt(new Uint8Array(await (await fetch(`${base}/receipt/0`, { headers })).arrayBuffer()));
      return receipt && verifyReceipt(receipt, entry, judge);
    };
    await expect.poll(ask, { timeout: PUBLISHED_MS_MAX, interval: 200 }).toMatchObject({
      quorum: true,
      logKeys: [{ type: 'ed25519' }, { type: 'p256' }],
    });
  });

  it('C12: an entry is found, held, then erased; the log still verifies', {
    timeout: 3 * PUBLISHED_MS_MAX,
  }, async () => {
    const request = await transcribe();
    await typesOf(request);
    const about = ['--subject', 'developer', '--zone', 'eu'];
    const requestsOf = async (...query: string[]) => {
      const { exit, value } = await auricle('audit', 'search', ...query);
      expect([0, 1]).toContain(exit);
      return (value.hits as { leaf: { req?: string } }[]).map(({ leaf }) => leaf.req);
    };
    const day = new Date().toISOString().slice(0, 10);
    const byModel = ['--model', 'reference-en', '--day', day];
    // The index trails the log. A round may end between the attempt of a request, which names no model, and
    // its `inference.complete`, which does.
    for (const query of [['--request', request], about, byModel, ['--type', 'inference.complete']]) {
      await expect
        .poll(() => requestsOf(...query), { timeout: PUBLISHED_MS_MAX, interval: 500, message: query.join(' ') })
        .toContain(request);
    }
    const held = await auricle('audit', 'hold', ...about, '--reason', 'case 7');
    const [{ id }] = held.value.data as [{ id: string }];
    const erase = () => auricle('audit', 'erase', ...about, '--basis', 'gdpr-17');
    expect((await erase()).value).toMatchObject({ data: [{ outcome: 'deferred', basis: 'hold' }] });
    expect((await auricle('audit', 'erasures')).value).toMatchObject({ data: [{ deferred: { basis: 'hold' } }] });
    expect(await requestsOf(...about)).toContain(request);
    expect((await auricle('audit', 'release', id, '--reason', 'over')).exit).toBe(0);
    expect((await auricle('audit', 'holds')).value).toMatchObject({ data: [] });
    expect((await erase()).value).toMatchObject({ data: [{ outcome: 'done' }] });
    expect(await requestsOf(...about)).not.toContain(request);
    // Plain members remain, with their proof.
    expect(await requestsOf('--request', request)).toContain(request);
    expect((await auricle('audit', 'verify', '--zone', 'eu')).exit).toBe(0);
  });

  it('one flipped bit of a tile in storage is found', { timeout: 2 * PUBLISHED_MS_MAX }, async () => {
    const account = BlobServiceClient.fromConnectionString(storageConnection(running.stack.ports));
    const container = account.getContainerClient('audit-state');
    const flipNewest = async (): Promise<boolean> => {
      const { size } = (await auricle('audit', 'verify', '--zone', 'eu')).value as { size: number };
      const year = new Date().getUTCFullYear();
      const blob = container.getBlockBlobClient(`eu/${year}/tile/0/000.p/${size}`);
      if (!(await blob.exists())) return false;
      const bytes = await blob.downloadToBuffer();
      bytes[40] = (bytes[40] as number) ^ 1;
      await blob.upload(bytes, bytes.length);
      return true;
    };
    // The log may grow at this moment, and its newest tile may change.
    await expect
      .poll(async () => (await flipNewest()) && (await auricle('audit', 'verify', '--zone', 'eu')), {
        timeout: PUBLISHED_MS_MAX,
      })
      .toMatchObject({ exit: 40, value: { verdict: 'invalid' } });
  });
});
