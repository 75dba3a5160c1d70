// A tenant's files on their way through the real clients: its sender, the events of its blobs, its functions,
// and agents that take its jobs and may die with one. Proxies inject the network's faults; here processes
// fail.
import { expect } from 'vitest';
import { admitFile } from '../../../functions/jobs/admit.ts';
import type { JobContext } from '../../../functions/jobs/context.ts';
import { grantUpload } from '../../../functions/jobs/grant-upload.ts';
import { openTakenJob } from '../../../functions/jobs/open-job.ts';
import { sweepTenant } from '../../../functions/jobs/sweep-tenant.ts';
import { takeOutcome } from '../../../functions/jobs/take-outcome.ts';
import { getUpload } from '../../../functions/jobs/uploads.ts';
import type { Stores } from '../../../functions/store/stores.ts';
import { eventId } from '../../../shared/audit/event-id.ts';
import { listHeaders } from '../../../shared/jobs/blocks.ts';
import type { UploadJob } from '../../../shared/jobs/job.ts';
import { type OutcomeFacts, outcomeMetadataOf } from '../../../shared/jobs/outcome.ts';
import { isOver } from '../../../shared/jobs/state.ts';
import type { NewUpload, OpenedJob, UploadRow } from '../../../shared/jobs/upload-contract.ts';
import { randomOf } from '../../fake/random.ts';
import { Outage } from '../../fake/storage.ts';
import { admitHead } from './sealed-head.ts';
import { KEY, Ledger } from './simulation.ts';

/** Advance of the functions' clock at each step, ms. */
const LOOK_MS = 20_000;
const piecesOf = (number: number): number => 1 + (number % 4);

export interface Weather {
  /** No further faults are injected. */
  calm: boolean;
}

export class Round {
  readonly seed: number;
  readonly random: () => number;
  readonly tenant: string;
  readonly seen = new Set<string>();
  readonly office: JobContext;
  readonly ledger = new Ledger();
  readonly weather: Weather;
  /** Stores without proxies, for observation. */
  readonly direct: Stores;
  uploads: NewUpload[] = [];
  skew = 0;

  constructor(seed: number, stores: Stores, direct: Stores, weather: Weather) {
    this.seed = seed;
    this.random = randomOf(seed);
    this.tenant = `round-${seed}`;
    this.weather = weather;
    this.direct = direct;
    this.office = {
      settings: { ZONES: ['eu'], ZONE_KEYS: { eu: [KEY] }, MODE: 'development', WEBHOOK_KEY: undefined },
      now: () => Date.now() + this.skew,
      log: () => {},
      rows: this.dying(stores.rows),
      blobs: this.dying(stores.blobs),
      jobs: this.dying(stores.jobs),
      notices: this.dying(stores.notices),
      usage: this.dying({ book: async (usage) => this.ledger.book(usage) }),
    };
  }

  bad(probability: number): boolean {
    return !this.weather.calm && this.random() < probability;
  }

  /** Wraps a store of a process that may die before or after every call. */
  dying<T extends object>(store: T): T {
    return new Proxy(store, {
      get: (target, name) => {
        const method: unknown = Reflect.get(target, name);
        if (typeof method !== 'function') return method;
        return async (...args: unknown[]) => {
          if (this.bad(0.02)) throw new Outage('died');
          const result: unknown = await method.apply(target, args);
          if (this.bad(0.02)) throw new Outage('died after it had happened');
          return result;
        };
      },
    });
  }

  /** Retries `work` until it succeeds; without faults the first try has to. */
  async insist<T>(work: () => Promise<T>): Promise<T> {
    for (;;) {
      const { calm } = this.weather;
      try {
        return await work();
      } catch (error) {
        if (calm) throw error;
      }
    }
  }

  /** Tries `work` that the system repeats by itself. */
  async attempt(work: () => Promise<unknown>): Promise<boolean> {
    const { calm } = this.weather;
    try {
      await work();
      return true;
    } catch (error) {
      if (calm) throw error;
      return false;
    }
  }

  async sendAll(files: number): Promise<void> {
    this.uploads = await Promise.all(Array.from({ length: files }, (_, number) => this.send(this.seed + number)));
  }

  /** Acts as a client that sends its file at once or by blocks. */
  async send(number: number): Promise<NewUpload> {
    const random = Uint8Array.from({ length: 10 }, () => Math.floor(this.random() * 256));
    const upload: NewUpload = {
      id: eventId(Date.now(), random),
      tenant: this.tenant,
      class: 'batch',
      model: 'm',
      sealed: number % 2 === 0,
      formats: ['json'],
      zone: 'eu',
      keepDays: 0,
    };
    const granted = await this.insist(() => grantUpload(this.office, upload));
    if (!granted.ok) throw new Error(granted.refusal.reason);
    const sound = new TextEncoder().encode(JSON.stringify({ pieces: piecesOf(number) }));
    const content = upload.sealed ? Buffer.concat([admitHead(this.tenant, upload.id, KEY.kid), sound]) : sound;
    const { url, headers } = granted.value;
    const put = (to: string, body: Uint8Array | string, more: Record<string, string> = {}) =>
      this.insist(async () => {
        const response = await fetch(to, { method: 'PUT', headers: more, body: body as BodyInit });
        // 409: an earlier attempt with a lost answer has written it.
        expect([201, 409]).toContain(response.status);
      });
    if (number % 3 > 0) await put(url, content, headers);
    else {
      const blocks = [content.slice(0, 3), content.slice(3)];
      for (const [index, block] of blocks.entries()) await put(`${url}&comp=block&blockid=${btoa(`b${index}`)}`, block);
      const list = blocks.map((_, index) => `<Latest>${btoa(`b${index}`)}</Latest>`).join('');
      await put(`${url}&comp=blocklist`, `<?xml version="1.0"?><BlockList>${list}</BlockList>`, listHeaders(headers));
    }
    return upload;
  }

  /**
   * Delivers events of new blobs, some lost and some duplicated, runs the timer now and then, and advances
   * the clock.
   */
  async look(number: number): Promise<void> {
    await this.attempt(() => this.events());
    this.skew += LOOK_MS;
    if (number % 3 === 0) await this.attempt(() => sweepTenant(this.office, this.tenant));
  }

  async events(): Promise<void> {
    for (const container of ['uploads', 'outcomes'] as const) {
      for (const { name, etag } of await this.direct.blobs.list(container, `${this.tenant}/`)) {
        const version = `${container}/${name} ${etag}`;
        if (this.seen.has(version)) continue;
        const tell = () => (container === 'uploads' ? admitFile(this.office, name) : takeOutcome(this.office, name));
        const times = this.bad(0.1) ? 0 : this.bad(0.2) ? 2 : 1;
        // The platform retries failures; losing too many commit races is an ordinary failure.
        const told = await this.attempt(() => Promise.all(Array.from({ length: times }, tell)));
        if (told) this.seen.add(version);
      }
    }
  }

  async work(job: UploadJob): Promise<void> {
    const opened = await openTakenJob(this.office, job, { agent: 'a', pool: 'p', zone: 'eu' });
    if (!opened.ok) return;
    const { value } = opened;
    if (job.kind === 'plan') {
      const { etag = '' } = value.read.upload ?? {};
      const file = await this.read(value, 'upload', { 'if-match': etag });
      const { pieces } = JSON.parse(file.slice(file.lastIndexOf('{'))) as { pieces: number };
      if (pieces === 1) return this.write(value, 'transcript', [0], { pieces, seconds: 1 });
      for (let piece = 0; piece < pieces; piece += 1) await this.write(value, `pieces/${piece}`, piece, {});
      return this.write(value, 'plan', pieces, { pieces, seconds: pieces });
    }
    if (job.kind === 'work') {
      const piece = JSON.parse(await this.read(value, `pieces/${job.piece}`)) as number;
      return this.write(value, `results/${job.piece}`, piece, {});
    }
    const results: unknown[] = [];
    for (let piece = 0; piece < value.upload.pieces; piece += 1) {
      results.push(JSON.parse(await this.read(value, `results/${piece}`)));
    }
    return this.write(value, 'transcript', results, { seconds: results.length });
  }

  async read(job: OpenedJob, name: string, headers: Record<string, string> = {}): Promise<string> {
    if (this.bad(0.03)) throw new Outage('the agent died');
    const response = await fetch(job.read[name]?.url ?? '', { headers });
    if (response.status !== 200) throw new Outage(`${response.status}`);
    return response.text();
  }

  async write(job: OpenedJob, name: string, content: unknown, facts: OutcomeFacts): Promise<void> {
    if (this.bad(0.03)) throw new Outage('the agent died');
    const metadata = Object.entries(outcomeMetadataOf(facts)).map(([key, value]) => [`x-ms-meta-${key}`, value]);
    const headers = { 'x-ms-blob-type': 'BlockBlob', 'if-none-match': '*', ...Object.fromEntries(metadata) };
    const response = await fetch(job.write[name]?.url ?? '', { method: 'PUT', headers, body: JSON.stringify(content) });
    expect([201, 403, 409]).toContain(response.status);
    if (this.bad(0.03)) throw new Outage('the agent died');
  }

  async status(upload: NewUpload): Promise<UploadRow> {
    const seen = await getUpload({ ...this.office, rows: this.direct.rows }, upload);
    if (!seen.ok) throw new Error(seen.refusal.reason);
    return seen.value;
  }

  async isOpen(): Promise<boolean> {
    const rows = await Promise.all(this.uploads.map((upload) => this.status(upload)));
    return rows.some(({ status, audio }) => !isOver(status) || audio === 'held');
  }

  /** Checks the invariant a day later: complete results and no remains. */
  async check(): Promise<void> {
    this.skew += 25 * 3_600_000;
    await sweepTenant(this.office, this.tenant);
    for (const [number, upload] of this.uploads.entries()) {
      const row = await this.status(upload);
      const pieces = piecesOf(this.seed + number);
      const { status, audio, transcript, refusal } = row;
      expect([status, audio, transcript, row.pieces, refusal]).toEqual(['done', 'deleted', 'held', pieces, undefined]);
      const place = `${this.tenant}/${upload.id}/1/transcript`;
      const address = await this.direct.blobs.address('outcomes', place, 'read', Date.now() + 60_000);
      expect(await (await fetch(address)).json()).toEqual(Array.from({ length: pieces }, (_, piece) => piece));
      const used = this.ledger.booked.get(`${upload.id}.1`);
      expect([used?.seconds, used?.bytes]).toEqual([pieces, row.bytes]);
    }
    const { blobs, rows } = this.direct;
    expect(this.ledger.booked.size).toBe(this.uploads.length);
    expect(await blobs.list('uploads', `${this.tenant}/`)).toEqual([]);
    expect(await blobs.list('outcomes', `${this.tenant}/`)).toHaveLength(this.uploads.length);
    for (const mark of ['b!', 'o!', 'q!', 'w!']) expect(await rows.scan(this.tenant, mark, `${mark}~`, 10)).toEqual([]);
  }
}
