import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { advance } from '../../../edge/witness/advance.ts';
import type { LogLine } from '../../../functions/audit/context/log-context.ts';
import { nameOfReceived, receive } from '../../../functions/audit/intake/intake.ts';
import { readDiverged } from '../../../functions/audit/log/diverged.ts';
import { checkpointName, divergedName, witnessedName } from '../../../functions/audit/log/log-names.ts';
import { makeReceipt } from '../../../functions/audit/log/make-receipt.ts';
import { readLogHealth } from '../../../functions/audit/read/read-log-health.ts';
import { Sequencer } from '../../../functions/audit/sequencer/sequencer.ts';
import { Witnessing } from '../../../functions/audit/witness/on-witness.ts';
import type { Post } from '../../../functions/audit/witness/request-cosignature.ts';
import { readCheckpoint, signCheckpoint } from '../../../shared/audit/checkpoint.ts';
import { latestAt, openJudge } from '../../../shared/audit/judge.ts';
import { openNote, openSigningKey, splitNote } from '../../../shared/audit/note.ts';
import { formatNoteKey, openNoteKey, readNoteKey } from '../../../shared/audit/note-key.ts';
import { type Policy, readPolicy } from '../../../shared/audit/policy.ts';
import { proveConsistency } from '../../../shared/audit/proof.ts';
import { readReceipt, verifyReceipt } from '../../../shared/audit/receipt.ts';
import { emptyRoot, type Hash, hashLeaf, rootOf } from '../../../shared/audit/tree.ts';
import { formatWitnessRequest, readWitnessRequest } from '../../../shared/audit/witness-request.ts';
import { MemoryStore, readStoredLog } from '../../fake/log-store.ts';
import { signedBy } from '../../fake/lying-witness.ts';
import { startWitness, type WitnessWorker, witnessKey } from '../../fake/witness.ts';
import notes from '../../vectors/audit/notes.json' with { type: 'json' };

const bytes = (text: string) => new TextEncoder().encode(text);
const log = await openSigningKey(new Uint8Array(32).fill(4));
const keyOf = (name: string) => formatNoteKey({ type: 'ed25519', name, publicKey: log.publicKey });
const hashes = Array.from({ length: 700 }, (_, at) => hashLeaf(bytes(`entry ${at}`)));
const headAt = (size: number, from: readonly Hash[] = hashes) => ({ size, root: rootOf(from, 0, size) });
const read = async (height: number, at: number) => rootOf(hashes, at * 2 ** height, (at + 1) * 2 ** height);

const folder = mkdtempSync(path.join(os.tmpdir(), 'auricle-witness-'));
let witness: WitnessWorker;
beforeAll(async () => {
  witness = await startWitness(folder, [
    { origin: 'one.example/log', keys: [keyOf('one.example/log')] },
    ...[
      'audit.example',
      'back.example/13',
      'back.example/24',
      'longer.example',
      'ahead.example',
      'silent.example',
      'doubted.example',
    ].map((base) => ({
      origin: `${base}/eu`,
      yearly: true,
      keys: [keyOf(`${base}/eu`)],
    })),
  ]);
});
afterAll(async () => {
  await witness?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** A question about a log of these sizes; the last `more` replaces parts of it. */
async function ask(origin: string, old: number, size: number, more: { proof?: Hash[]; root?: Hash } = {}) {
  const proof = more.proof ?? (old <= size ? await proveConsistency(old, size, read) : []);
  const note = await signCheckpoint({ origin, size, root: more.root ?? headAt(size).root }, log.signer(origin));
  const response = await witness.ask('/add-checkpoint', formatWitnessRequest({ old, proof, checkpoint: bytes(note) }));
  return { note, status: response.status, type: response.headers.get('content-type'), text: await response.text() };
}
const checkpointPath = (origin: string) => `/${createHash('sha256').update(origin).digest('hex')}/checkpoint`;
const verifier = await openNoteKey(readNoteKey(witnessKey) as NonNullable<ReturnType<typeof readNoteKey>>);

describe('C9 decisions of a witness', () => {
  it('goes on in the example of transparency-dev’s witness, and not from elsewhere', () => {
    const [old, now] = [notes.growth.before, notes.growth.after].map((note) =>
      readCheckpoint(splitNote(bytes(note))?.text ?? ''),
    );
    const proof = notes.growth.proof.map((hash) => Uint8Array.from(Buffer.from(hash, 'hex')));
    if (!old || !now) throw new Error('no checkpoints');
    expect(advance(old, 5, proof, now)).toEqual({ status: 200 });
    expect(advance(old, 4, proof, now)).toEqual({ status: 409, size: 5 });
    expect(advance(old, 5, proof.slice(1), now)).toEqual({ status: 422 });
    expect(advance(undefined, 0, [], now)).toEqual({ status: 200 });
    expect(advance(undefined, 0, proof, now)).toEqual({ status: 422 });
    expect(advance(undefined, 5, proof, now)).toEqual({ status: 409, size: 0 });
    expect(advance(now, 8, [], now)).toEqual({ status: 200 });
    expect(advance(now, 8, [], { ...now, root: old.root })).toEqual({ status: 422 });
    expect(advance(now, 8, [], old)).toEqual({ status: 400 });
    expect(advance(undefined, 0, [], { size: 0, root: emptyRoot })).toEqual({ status: 200 });
    expect(advance(undefined, 0, [], { size: 0, root: now.root })).toEqual({ status: 422 });
  });
});

describe('C9 C2SP tlog-witness: add-checkpoint', () => {
  it('cosigns grown logs and publishes the cosigned checkpoint', async () => {
    const origin = 'one.example/log';
    expect((await witness.ask(checkpointPath(origin))).status).toBe(404);
    for (const [old, size] of [
      [0, 3],
      [3, 3],
      [3, 300],
      [300, 700],
    ] as const) {
      const { status, text, note } = await ask(origin, old, size);
      expect(status, text).toBe(200);
      const opened = await openNote(bytes(note + text), [verifier]);
      expect(opened?.signers).toEqual(['witness.example/w1']);
      expect(await (await witness.ask(checkpointPath(origin))).text()).toBe(note + text);
    }
  });

  it('answers 409 with its size, 422, 400, 404 and 403 as specified', async () => {
    const origin = 'audit.example/eu/2030';
    expect((await ask(origin, 0, 5)).status).toBe(200);
    expect(await ask(origin, 0, 9)).toMatchObject({ status: 409, type: 'text/x.tlog.size', text: '5\n' });
    expect(await ask(origin, 4, 9)).toMatchObject({ status: 409, text: '5\n' });
    expect((await ask(origin, 9, 5)).status).toBe(400);
    expect((await ask(origin, 5, 9, { proof: [] })).status).toBe(422);
    expect((await ask(origin, 5, 9, { root: headAt(8).root })).status).toBe(422);
    expect((await ask(origin, 5, 5, { root: headAt(4).root })).status).toBe(422);
    expect((await ask('two.example/log', 0, 5)).status).toBe(404);
    for (const other of ['audit.example/eu', 'audit.example/eu/20300', 'audit.example/eu/203x']) {
      expect((await ask(other, 0, 5)).status, other).toBe(404);
    }
    // After all of that it stands where it stood.
    expect((await ask(origin, 5, 9)).status).toBe(200);
    const stranger = (await openSigningKey(new Uint8Array(32).fill(5))).signer(origin);
    const forged = bytes(await signCheckpoint({ origin, ...headAt(10) }, stranger));
    const body = formatWitnessRequest({ old: 9, proof: await proveConsistency(9, 10, read), checkpoint: forged });
    expect((await witness.ask('/add-checkpoint', body)).status).toBe(403);
  });

  it('a malformed request gets 400, an unknown address 404', async () => {
    const note = bytes(
      await signCheckpoint({ origin: 'one.example/log', ...headAt(3) }, log.signer('one.example/log')),
    );
    const whole = new TextDecoder().decode(formatWitnessRequest({ old: 0, proof: [], checkpoint: note }));
    const hash = Buffer.alloc(32).toString('base64');
    const wrong = {
      nothing: '',
      'no old size': whole.replace('old 0\n', '\n'),
      'a zero before the size': whole.replace('old 0', 'old 00'),
      'a sign': whole.replace('old 0', 'old -1'),
      'more than counts exactly': whole.replace('old 0', 'old 9007199254740992'),
      'no empty line': whole.replace('old 0\n\n', 'old 0\n'),
      'a hash that is cut off': whole.replace('old 0\n', `old 0\n${hash.slice(4)}\n`),
      'more hashes than 63': whole.replace('old 0\n', `old 0\n${`${hash}\n`.repeat(64)}`),
      'no checkpoint': 'old 0\n\n',
      'a note that is no checkpoint': whole.replace('\n3\n', '\nthree\n'),
      'more than a log has to say': whole + '— x AAAAAAAA\n'.repeat(10_000),
    };
    for (const [name, body] of Object.entries(wrong)) {
      expect((await witness.ask('/add-checkpoint', body)).status, name).toBe(400);
    }
    expect((await witness.ask('/add-checkpoint')).status).toBe(404);
    expect((await witness.ask(`/${'0'.repeat(64)}/checkpoint`)).status).toBe(404);
    expect((await witness.ask('/other', 'x')).status).toBe(405);
    expect(readWitnessRequest(bytes(whole))?.old).toBe(0);
  });

  it('one of several concurrent requests from the same size succeeds', async () => {
    const origin = 'audit.example/eu/2031';
    expect((await ask(origin, 0, 10)).status).toBe(200);
    const answers = await Promise.all(Array.from({ length: 12 }, (_, at) => ask(origin, 10, 11 + at * 7)));
    const taken = answers.filter(({ status }) => status === 200);
    expect(taken).toHaveLength(1);
    const size = splitNote(bytes(taken[0]?.note ?? ''))?.text.split('\n')[1];
    expect(answers.filter(({ status, text }) => status === 409 && text === `${size}\n`)).toHaveLength(11);
  });
});

const nothingShown = async () => new Response('', { status: 404 });
const showsIt = async (url: string) => witness.ask(new URL(url).pathname);

const START = Date.UTC(2026, 5, 1);

/** A log of a sequencer, and those who witness it. */
class Kept {
  readonly store = new MemoryStore();
  readonly lines: LogLine[] = [];
  readonly policy: (origin: string) => Policy;
  now = START;
  #next = 1;
  readonly #sequencer: Sequencer;

  constructor(witnesses: string, base = 'audit.example') {
    const told = readPolicy(bytes(witnesses));
    if (!told.ok) throw new Error(told.refusal);
    const own = (name: string) => ({ key: { type: 'ed25519' as const, name, publicKey: log.publicKey } });
    this.policy = (origin) => ({ ...told.value, logs: [own(origin)] });
    const signers = (name: string) => [log.signer(name)];
    const parts = { store: this.store, zone: 'eu', base, signers, newId: () => crypto.randomUUID() };
    this.#sequencer = new Sequencer({ ...parts, now: () => ++this.now });
  }

  async grow(count: number): Promise<string[]> {
    const rows = Array.from({ length: count }, (_, at) => ({
      to: this.#next + at,
      t: this.now,
      events: [{ v: 1, id: crypto.randomUUID(), type: 'route', at: this.now, producer: 'edge', tenant: 'dev' }],
    }));
    const delivery = {
      v: 1 as const,
      producer: 'gate/dev/eu',
      epoch: '2f7c9a30-7c3f-4f1e-8f0e-5a5f0f5b0f11',
      oldest: 1,
      rows,
    };
    const received = await receive(delivery, this.now, async () => '');
    if (!received) throw new Error('nothing received');
    await this.store.create('intake', nameOfReceived('eu', received), bytes(JSON.stringify(received)));
    this.#next += count;
    const kinds: string[] = [];
    for (let rounds = 0; rounds < 3; rounds += 1) kinds.push((await this.#sequencer.round()).kind);
    return kinds;
  }

  witnessing(...asked: ConstructorParameters<typeof Witnessing> extends [unknown, ...infer Rest] ? Rest : never) {
    return new Witnessing(this.desk, ...asked);
  }

  get desk() {
    const log = (line: LogLine) => void this.lines.push(line);
    // The witness is another process, and it is now there: it signs at no other time.
    const now = () => Date.now() + this.now - START;
    return { store: this.store as never, zones: ['eu'], policy: this.policy, now, log, settings: {} };
  }

  /** The whole account as it is now, to be put back later. */
  copy(): () => void {
    const areas = [...this.store.areas].map(([area, files]) => [area, new Map(files)] as const);
    const next = this.#next;
    return () => {
      this.store.areas.clear();
      for (const [area, files] of areas) this.store.areas.set(area, new Map(files));
      this.#next = next;
    };
  }

  get size(): number {
    return readCheckpoint(splitNote(this.kept(checkpointName('eu', 2026)))?.text ?? '')?.size ?? 0;
  }

  kept(name: string): Uint8Array {
    return this.store.area('state').get(name)?.bytes ?? new Uint8Array();
  }
}

const LINE = `witness w1 ${witnessKey} http://witness.example/\nquorum w1\n`;
const toWorker = async (url: string, body: Uint8Array<ArrayBuffer>) => witness.ask(new URL(url).pathname, body);

describe('C9 a log and its witnesses', () => {
  it('a published checkpoint is cosigned, stored, and in every receipt', async () => {
    const kept = new Kept(LINE);
    const judge = await openJudge(kept.policy('audit.example/eu/2026'));
    const witnessing = kept.witnessing(toWorker);
    for (const count of [1, 5, 300]) {
      await kept.grow(count);
      expect(await judge(kept.kept(checkpointName('eu', 2026)))).toMatchObject({ quorum: false });
      await witnessing.show('eu');
      for (const name of [checkpointName('eu', 2026), witnessedName('eu', 2026)]) {
        expect(await judge(kept.kept(name)), name).toMatchObject({ quorum: true });
      }
    }
    // Another process, which knows nothing of the first, goes on where the witness stands.
    await kept.grow(4);
    await kept.witnessing(toWorker).show('eu');
    expect(await judge(kept.kept(checkpointName('eu', 2026)))).toMatchObject({ quorum: true });
    expect(kept.lines).toEqual([]);
    const { entries } = readStoredLog(kept.store, 'eu', 2026);
    for (const index of [0, 255, 256, entries.length - 1]) {
      const receipt = readReceipt(bytes((await makeReceipt(kept.store, 'eu', 2026, index)) ?? ''));
      if (!receipt) throw new Error('no receipt');
      expect(await verifyReceipt(receipt, entries[index] as Uint8Array, judge)).toMatchObject({ quorum: true });
    }
    expect(await makeReceipt(kept.store, 'eu', 2026, entries.length)).toBeUndefined();
    // An unwitnessed entry has a receipt of the log alone.
    await kept.grow(1);
    const newest = readReceipt(bytes((await makeReceipt(kept.store, 'eu', 2026, entries.length)) ?? ''));
    expect(await judge(bytes(newest?.checkpoint ?? ''))).toMatchObject({ quorum: false });
  });

  it('witnesses that are silent, lie, or sign something else hold up nothing', async () => {
    const two = LINE.replace('quorum w1', 'quorum none');
    const kept = new Kept(two, 'silent.example');
    await kept.grow(3);
    const answers: [string, Post][] = [
      ['TypeError', () => Promise.reject(new TypeError('no way there'))],
      ['answered 500', async () => new Response('', { status: 500 })],
      [
        'answered 409',
        async () => new Response('x\n', { status: 409, headers: { 'content-type': 'text/x.tlog.size' } }),
      ],
      ['refuses', async () => new Response('', { status: 422 })],
      [
        'stands nowhere',
        async () => new Response('2\n', { status: 409, headers: { 'content-type': 'text/x.tlog.size' } }),
      ],
      ['signed with another key', async () => new Response('— other AAAAAAAA\n')],
      ['signed with another key', async () => new Response('x'.repeat(100_000))],
      ['signed another text', async (_url, body) => signedBy(body, { over: 'all of it' })],
      ['signed in the future', async (_url, body) => signedBy(body, { laterMs: 10 * 365 * 86_400_000 })],
    ];
    const before = kept.kept(checkpointName('eu', 2026));
    for (const [why, answer] of answers) {
      kept.lines.length = 0;
      await kept.witnessing(answer, nothingShown).show('eu');
      expect(kept.lines, why).toEqual([{ what: 'unwitnessed', zone: 'eu', detail: `w1: ${why}` }]);
    }
    expect(kept.kept(checkpointName('eu', 2026))).toEqual(before);
    expect(kept.kept(witnessedName('eu', 2026))).toHaveLength(0);
    expect((await readLogHealth(kept.desk, 'eu')).refusing).toEqual(['w1']);
    await kept.witnessing(toWorker, nothingShown).show('eu');
    expect((await readLogHealth(kept.desk, 'eu')).refusing).toBeUndefined();
  });
});

describe('C9 a witness that lies', () => {
  const YEARS = [2026, 2027] as const;
  const names = YEARS.flatMap((year) => [checkpointName('eu', year), witnessedName('eu', year)]);

  it.each([
    [
      'what an earlier version let through is put right, at the end of a year as well',
      async (text: string) => {
        const response = await signedBy(formatWitnessRequest({ old: 0, proof: [], checkpoint: bytes(text) }), {
          over: 'all of it',
        });
        return `${text}${(await response.text()).slice(1)}`;
      },
    ],
    [
      'a signature whose time is to come makes room for one of now',
      async (text: string) => {
        const response = await signedBy(formatWitnessRequest({ old: 0, proof: [], checkpoint: bytes(text) }), {
          laterMs: 10 * 365 * 86_400_000,
        });
        return `${text}${await response.text()}`;
      },
    ],
  ])('%s', async (_what, spoil) => {
    const kept = new Kept(LINE, 'spoilt.example');
    await kept.grow(3);
    kept.now = Date.UTC(2027, 0, 1);
    await kept.grow(2);
    for (const year of YEARS) {
      const name = checkpointName('eu', year);
      const spoilt = bytes(await spoil(new TextDecoder().decode(kept.kept(name))));
      for (const one of [name, witnessedName('eu', year)]) {
        const { version = '' } = kept.store.area('state').get(one) ?? {};
        if (!(await kept.store.replace('state', one, spoilt, version))) await kept.store.create('state', one, spoilt);
      }
    }
    const judged = async () =>
      Promise.all(
        names.map(async (name) => {
          const judge = await openJudge(kept.policy(`spoilt.example/eu/${name.split('/')[1]}`));
          const found = await judge(kept.kept(name), latestAt(kept.desk.now()));
          return found ? found.quorum : 'nobody can believe it';
        }),
      );
    expect(await judged()).not.toContain(true);
    // The witness goes on lying, or says nothing: what the log signed is there all the same, and can be believed.
    await kept.witnessing((_url, body) => signedBy(body, { over: 'all of it' }), nothingShown).show('eu');
    expect(await judged()).toEqual([false, false, false, false]);
    await kept.witnessing((_url, body) => signedBy(body), nothingShown).show('eu');
    expect(await judged()).toEqual([true, true, true, true]);
    const { log: seen } = await readLogHealth(kept.desk, 'eu');
    expect(seen?.witnessed).toBe(seen?.size);
    for (const [at, year] of YEARS.entries()) {
      const receipt = readReceipt(bytes((await makeReceipt(kept.store, 'eu', year, at)) ?? ''));
      const judge = await openJudge(kept.policy(`spoilt.example/eu/${year}`));
      expect(await judge(bytes(receipt?.checkpoint ?? ''))).toMatchObject({ quorum: true });
    }
  });
});

describe('C9 a log that went back in time', () => {
  it.each([
    ['a process that remembers', (kept: Kept, before: Witnessing) => [before, kept] as const],
    ['a new process', (kept: Kept) => [kept.witnessing(toWorker, showsIt), kept] as const],
  ])('is signed no further once a witness shows what the log signed: %s', async (name, processOf) => {
    const kept = new Kept(LINE, `back.example/${name.length}`);
    const before = kept.witnessing(toWorker, showsIt);
    await kept.grow(3);
    await before.show('eu');
    const restore = kept.copy();
    await kept.grow(9);
    await before.show('eu');
    restore();
    const [witnessing] = processOf(kept, before);
    await witnessing.show('eu');
    // The witness has signed beyond the restored log; the first new entry reveals the fork.
    await kept.grow(2);
    await witnessing.show('eu');
    const size = kept.size;
    expect(kept.lines).toContainEqual({ what: 'diverged', zone: 'eu', detail: expect.stringContaining('13 entries') });
    expect((await readLogHealth(kept.desk, 'eu')).diverged).toMatchObject({ witness: 'w1' });
    const lines = kept.lines.length;
    const kinds = await kept.grow(5);
    await witnessing.show('eu');
    expect(new Set(kinds)).toEqual(new Set(['diverged']));
    expect([kept.size, kept.lines.length]).toEqual([size, lines]);
    // A person has looked.
    await kept.store.remove('state', divergedName('eu'));
    expect(await kept.grow(1)).toContain('committed');
  });

  it('is found through the witness once the second history is longer', async () => {
    const kept = new Kept(LINE, 'longer.example');
    await kept.grow(3);
    const restore = kept.copy();
    await kept.grow(9);
    await kept.witnessing(toWorker, showsIt).show('eu');
    restore();
    await kept.grow(30);
    await kept.witnessing(toWorker, nothingShown).show('eu');
    expect(await readDiverged(kept.store, 'eu'), 'a refusal alone proves nothing').toBeUndefined();
    expect((await readLogHealth(kept.desk, 'eu')).refusing).toEqual(['w1']);
    await kept.witnessing(toWorker, showsIt).show('eu');
    const mark = await readDiverged(kept.store, 'eu');
    expect(mark?.why).toContain('another root');
    expect(mark?.note).toContain('longer.example/eu/2026\n13\n');
  });

  it('an unsigned claim of a witness leaves the log running, with doubt in health', async () => {
    const kept = new Kept(LINE, 'doubted.example');
    await kept.grow(3);
    const claim = () => new Response('999999\n', { status: 409, headers: { 'content-type': 'text/x.tlog.size' } });
    const stranger = (await openSigningKey(new Uint8Array(32).fill(5))).signer('doubted.example/eu/2026');
    const forged = await signCheckpoint({ origin: 'doubted.example/eu/2026', ...headAt(600) }, stranger);
    const other = await signCheckpoint(
      { origin: 'other.example/eu/2026', ...headAt(600) },
      log.signer('other.example/eu/2026'),
    );
    const witnessing = kept.witnessing(async () => claim(), nothingShown);
    const why = 'says that it has seen 999999 entries and shows none of them signed, the log has 4';
    await witnessing.show('eu');
    await witnessing.show('eu');
    expect(kept.lines.filter(({ what }) => what === 'doubted')).toEqual([
      { what: 'doubted', zone: 'eu', detail: `w1: ${why}` },
    ]);
    for (const shown of [forged, other, '']) {
      await kept
        .witnessing(
          async () => claim(),
          async () => new Response(shown),
        )
        .show('eu');
    }
    expect(await readDiverged(kept.store, 'eu')).toBeUndefined();
    expect(await kept.grow(2)).toContain('committed');
    const health = await readLogHealth(kept.desk, 'eu');
    expect([health.diverged, health.doubted]).toEqual([undefined, [{ at: expect.any(Number), witness: 'w1', why }]]);
    kept.now += 60_000;
    await witnessing.show('eu');
    expect(kept.lines.filter(({ what }) => what === 'doubted').at(-1)?.detail).toContain('the log has');
    // It has signed since: what it said is over.
    await kept.witnessing(toWorker, nothingShown).show('eu');
    expect((await readLogHealth(kept.desk, 'eu')).doubted).toBeUndefined();
  });

  it('another process ahead, or a foreign signature, is no fork', async () => {
    const kept = new Kept(LINE, 'ahead.example');
    await kept.grow(3);
    const other = kept.witnessing(toWorker, showsIt);
    let between = async () => {
      between = async () => {};
      await kept.grow(9);
      await other.show('eu');
    };
    // Between its question and the answer, another process publishes more and shows it.
    await kept
      .witnessing(async (url, body) => {
        await between();
        return toWorker(url, body);
      }, showsIt)
      .show('eu');
    expect(kept.lines).toEqual([{ what: 'unwitnessed', zone: 'eu', detail: 'w1: is ahead' }]);
    const stranger = (await openSigningKey(new Uint8Array(32).fill(5))).signer('ahead.example/eu/2026');
    const forged = await signCheckpoint({ origin: 'ahead.example/eu/2026', ...headAt(600) }, stranger);
    await kept.grow(1);
    await kept
      .witnessing(
        async () => new Response('', { status: 422 }),
        async () => new Response(forged),
      )
      .show('eu');
    expect(await readDiverged(kept.store, 'eu')).toBeUndefined();
  });
});
