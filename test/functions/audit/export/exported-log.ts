// A log of several tenants, and exports of it, both made by the code that makes them, on storage in memory.

import { advanceExport } from '../../../../functions/audit/export/advance-export.ts';
import { createExport } from '../../../../functions/audit/export/create-export.ts';
import type { ExportContext } from '../../../../functions/audit/export/export-context.ts';
import { type ExportRow, findExport } from '../../../../functions/audit/export/export-row.ts';
import { EXPORT_PART_BYTES, EXPORT_STEP_BUNDLES } from '../../../../functions/audit/export/open-exports.ts';
import { nameOfReceived, receive } from '../../../../functions/audit/intake/intake.ts';
import type { LogKeys } from '../../../../functions/audit/log/log-keys.ts';
import { openReporter } from '../../../../functions/audit/report/report.ts';
import { Reads } from '../../../../functions/audit/report/report-reads.ts';
import { Sequencer } from '../../../../functions/audit/sequencer/sequencer.ts';
import { openHide } from '../../../../functions/audit/sidecar/hide.ts';
import { wrapWith } from '../../../../functions/audit/sidecar/sidecar-box.ts';
import { SidecarKeys } from '../../../../functions/audit/sidecar/sidecar-keys.ts';
import type { NewExport } from '../../../../shared/audit/bundle/contract.ts';
import {
  encodeManifest,
  exportName,
  type Manifest,
  manifestNoteText,
} from '../../../../shared/audit/bundle/manifest.ts';
import { signCheckpoint } from '../../../../shared/audit/checkpoint.ts';
import { cosigner } from '../../../../shared/audit/cosignature.ts';
import { formatNames } from '../../../../shared/audit/derived/formats.ts';
import { eventId } from '../../../../shared/audit/event-id.ts';
import { openSigningKey, signNote, splitNote } from '../../../../shared/audit/note.ts';
import { type Policy, readPolicy } from '../../../../shared/audit/policy.ts';
import { type BundleFiles, digestOf } from '../../../../shared/audit/verify/bundle-files.ts';
import type { Refusal } from '../../../../shared/refusal.ts';
import { MemoryStore } from '../../../fake/log-store.ts';
import { MemoryRows } from '../../../fake/rows.ts';

export const ZONE = 'eu';
export const BASE = 'audit.example';
export const ORIGIN = `${BASE}/${ZONE}/2026`;
const SUMMER = Date.UTC(2026, 5, 1);

export const logKey = await openSigningKey(new Uint8Array(32).fill(5));
export const witnessKey = await openSigningKey(new Uint8Array(32).fill(6));
const WITNESS = 'witness.example/w1';

const never = new Promise<never>(() => {});

export class ExportedLog {
  readonly store = new MemoryStore();
  readonly rows = new MemoryRows();
  now = SUMMER;
  readonly keys = new SidecarKeys({
    store: this.store,
    zone: ZONE,
    wrap: wrapWith(Buffer.alloc(32, 7).toString('base64')),
    now: () => this.now,
  });
  readonly #delivered = new Map<string, number>();
  readonly desk: ExportContext;
  /** Keys of the log in the place of the one that it has otherwise. */
  logKeys: LogKeys | undefined;
  /** Called whenever the desk lets others go on. */
  onBreath: () => void = () => {};
  /** Lines that the desk logged. */
  readonly lines: unknown[] = [];

  constructor({
    witnessed = false,
    partBytes = EXPORT_PART_BYTES,
    scanBundles = EXPORT_STEP_BUNDLES,
  }: { witnessed?: boolean; partBytes?: number; scanBundles?: number } = {}) {
    const hide = () => openHide(this.keys);
    const after = () => ({ elapsed: never, cancel: () => {} });
    const reporter = openReporter({ store: this.store, hide, now: () => this.now, after });
    const leases = { hold: async () => 'held', release: async () => {} };
    this.desk = {
      store: Object.assign(this.store, leases),
      zones: [ZONE],
      base: BASE,
      settings: {},
      signer: (name) => (this.logKeys ? this.logKeys.signer(name) : logKey.signer(name)),
      policy: (origin) => this.logKeys?.policy(origin) ?? policyOf(origin, witnessed),
      keys: () => this.keys,
      now: () => this.now,
      log: (line) => void this.lines.push(line),
      rows: this.rows,
      reads: new Reads(reporter, () => this.now),
      report: (zone, draft) => reporter.report(zone, draft),
      random: (count) => crypto.getRandomValues(new Uint8Array(count)),
      breathe: async () => void this.onBreath(),
      partBytes,
      scanBundles,
      verifier: new Map([['VERIFY.md', new TextEncoder().encode('# How to verify\n')]]),
    };
  }

  event(tenant: string, more: Record<string, unknown> = {}): Record<string, unknown> {
    const id = eventId(this.now, crypto.getRandomValues(new Uint8Array(10)));
    const base = { v: 1, id, type: 'inference.complete', at: this.now, producer: 'edge', request: `r-${tenant}` };
    return { ...base, tenant, subject: `c1:${tenant}-ann`, action: 'transcribe', status: 200, bytes: 1_000, ...more };
  }

  /** Events of the outbox of a tenant, in one of its lives, into the intake. `skip` of them before these are lost. */
  async deliver(
    tenant: string,
    events: readonly Record<string, unknown>[],
    skip = 0,
    epoch = '2f7c9a30-7c3f-4f1e-8f0e-5a5f0f5b0f11',
  ): Promise<void> {
    const life = `${tenant} ${epoch}`;
    const from = (this.#delivered.get(life) ?? 0) + skip + 1;
    const to = from + events.length - 1;
    this.#delivered.set(life, to);
    const rows = [{ to, t: this.now, events: [...events] }];
    const delivery = { v: 1 as const, producer: `gate/${tenant}/${ZONE}`, epoch, oldest: from, rows };
    const received = await receive(delivery, this.now, openHide(this.keys));
    if (!received) throw new Error('not taken');
    const name = nameOfReceived(ZONE, received);
    await this.store.create('intake', name, new TextEncoder().encode(JSON.stringify(received)));
  }

  async write(
    tenant: string,
    count: number,
    more: (at: number) => Record<string, unknown> = () => ({}),
  ): Promise<void> {
    await this.deliver(
      tenant,
      Array.from({ length: count }, (_, at) => this.event(tenant, more(at))),
    );
    await this.commit();
  }

  async commit(): Promise<void> {
    for (let rounds = 0; rounds < 8; rounds += 1) {
      this.now += 1_000;
      const newId = () => eventId(this.now, crypto.getRandomValues(new Uint8Array(10)));
      const signers = (name: string) => this.logKeys?.signers(name) ?? [logKey.signer(name)];
      const parts = { store: this.store, zone: ZONE, base: BASE, now: () => this.now, newId, signers };
      if ((await new Sequencer(parts).round()).kind === 'idle') return;
    }
    throw new Error('it is never done');
  }

  /** Puts the witness's signature below the published checkpoint. */
  async witness(year = 2026): Promise<void> {
    const name = `${ZONE}/${year}/checkpoint`;
    const kept = await this.store.read('state', name);
    const text = kept && splitNote(kept.bytes)?.text;
    if (!kept || text === undefined) throw new Error('nothing is published');
    const note = await cosigned(text, Math.floor(this.now / 1_000));
    await this.store.replace('state', name, new TextEncoder().encode(note), kept.version);
  }

  #ask(tenant: string, more: Partial<NewExport>) {
    const asked = { tenant, request: 'req-1', purpose: 'yearly audit', formats: [...formatNames], redaction: 'full' };
    return createExport(this.desk, ZONE, { ...asked, query: {}, ...more });
  }

  async ask(tenant: string, more: Partial<NewExport> = {}): Promise<ExportRow> {
    const made = await this.#ask(tenant, more);
    if (!made.ok) throw new Error(made.refusal.reason);
    return made.value;
  }

  /** Returns the refusal of an export. */
  async refusal(tenant: string, more: Partial<NewExport>): Promise<Refusal> {
    const made = await this.#ask(tenant, more);
    if (made.ok) throw new Error('it is made');
    return made.refusal;
  }

  async row({ tenant, id }: ExportRow): Promise<ExportRow> {
    const kept = await findExport(this.rows, ZONE, tenant, id);
    if (!kept) throw new Error('no such export');
    return kept.row;
  }

  /** All steps of an export that was asked for. */
  async finish(asked: ExportRow, desk: ExportContext = this.desk): Promise<ExportRow> {
    await this.commit();
    for (let steps = 0; steps < 1_000; steps += 1) {
      await advanceExport(desk, ZONE, asked.tenant, asked.id);
      const row = await this.row(asked);
      if (['done', 'failed', 'expired'].includes(row.state)) return row;
      this.now = Math.max(this.now, row.due);
    }
    throw new Error('it is never done');
  }

  async export(tenant: string, more: Partial<NewExport> = {}): Promise<Map<string, Uint8Array>> {
    const row = await this.finish(await this.ask(tenant, more));
    if (row.state !== 'done') throw new Error(`${row.state}: ${row.reason}: ${JSON.stringify(this.lines)}`);
    return this.files(row);
  }

  /** Returns the stored files of an export, as downloaded. */
  files({ tenant, id }: ExportRow): Map<string, Uint8Array> {
    const prefix = `${ZONE}/${tenant}/${id}/`;
    const names = [...this.store.area('exports')].filter(([name]) => name.startsWith(prefix));
    return new Map(
      names
        .map(([name, { bytes }]) => [name.slice(prefix.length), bytes] as const)
        .filter(([name]) => !name.startsWith('.')),
    );
  }
}

function policyOf(origin: string, witnessed: boolean): Policy {
  const logs = [{ key: { type: 'ed25519' as const, name: origin, publicKey: logKey.publicKey } }];
  const key = { type: 'cosignature' as const, name: WITNESS, publicKey: witnessKey.publicKey };
  return witnessed
    ? { logs, witnesses: [{ name: 'w1', key }], groups: [], quorum: 'w1' }
    : { logs, witnesses: [], groups: [], quorum: 'none' };
}

/** A checkpoint's text signed by the log and by the witness. */
export async function cosigned(text: string, seconds: number): Promise<string> {
  const signer = cosigner(
    WITNESS,
    {
      publicKey: witnessKey.publicKey,
      sign: async (message) => {
        // The witness's key, for any text: what it signs has a first line of its own.
        return witnessKey.signer(WITNESS).sign(message);
      },
    },
    () => seconds,
  );
  const [origin = '', size = '', root = ''] = text.split('\n');
  const checkpoint = { origin, size: Number(size), root: new Uint8Array(Buffer.from(root, 'base64')) };
  return signCheckpoint(checkpoint, logKey.signer(origin), signer);
}

export const readerOf = (files: ReadonlyMap<string, Uint8Array>): BundleFiles => ({
  list: async () => [...files.keys()],
  read: async (path) => files.get(path),
});

/** Signs a bundle again with the key of the log. */
export async function signedAgain(
  files: Map<string, Uint8Array>,
  change: (manifest: Manifest) => Manifest = (same) => same,
  origin: string = ORIGIN,
): Promise<Map<string, Uint8Array>> {
  const manifest = JSON.parse(new TextDecoder().decode(files.get('manifest.json'))) as Manifest;
  const listed = await Promise.all(
    manifest.files
      .filter(({ path }) => files.has(path))
      .map(async ({ path }) => {
        const bytes = files.get(path) as Uint8Array;
        return { path, bytes: bytes.length, sha256: await digestOf(bytes) };
      }),
  );
  const bytes = encodeManifest(change({ ...manifest, files: listed }));
  files.set('manifest.json', bytes);
  const text = manifestNoteText(origin, await digestOf(bytes));
  files.set('manifest.note', new TextEncoder().encode(await signNote(text, [logKey.signer(exportName(origin))])));
  return files;
}

export { readPolicy };
