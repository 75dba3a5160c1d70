// An auditor's export of a log, in a folder, and the cost of `node verify.mjs` there.
import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { buildVerifier } from '../../../infra/verify/build.ts';
import { type DerivedFormat, formatNames } from '../../../shared/audit/derived/formats.ts';
import { ExportedLog } from '../../functions/audit/export/exported-log.ts';
import { type Cost, costIn, tellingCost } from './tell-cost.ts';

const run = promisify(execFile);
/** Events of one delivery. */
const AT_ONCE = 500;
const TENANT = 'acme';

/** Members of an edge event, most of them hidden. */
const said = (at: number) => ({
  ...{ class: 'interactive', model: 'reference-en', language: 'en', agent: 'aks-westeurope-0', pool: 'eu-a' },
  ...{ revision: `sha256:${'0'.repeat(64)}`, request: `req_${at.toString(36).padStart(20, '0')}` },
  ...{ audioSeconds: 3.25 + at, milliseconds: 120 + (at % 50) },
});

interface Bundles {
  readonly small: string;
  readonly plain: string;
  readonly derived: string;
}

/** Exports of one log of `count` events of a tenant, with all formats and with none, and one of nearly nothing: their folders. */
export async function makeBundles(folder: string, count: number): Promise<Bundles> {
  const log = new ExportedLog();
  for (let at = 0; at < count; at += AT_ONCE) {
    const events = Array.from({ length: Math.min(AT_ONCE, count - at) }, (_, one) => log.event(TENANT, said(at + one)));
    await log.deliver(TENANT, events);
  }
  await log.commit();
  const verifier = await buildVerifier();
  const write = async (name: string, formats: DerivedFormat[], tenant = TENANT) => {
    const files = await log.export(tenant, { formats });
    for (const [file, bytes] of [...verifier, ...files]) {
      const place = path.join(folder, name, file);
      mkdirSync(path.dirname(place), { recursive: true });
      writeFileSync(place, bytes);
    }
    return path.join(folder, name);
  };
  await log.write('other', 1);
  return {
    small: await write('small', [], 'other'),
    plain: await write('plain', []),
    derived: await write('derived', [...formatNames]),
  };
}

/** The verifier that lies in the bundle, in a process of its own, its start included. */
export async function verifyBundleHere(folder: string): Promise<Cost> {
  const args = [...tellingCost, path.join(folder, 'verify.mjs')];
  // 10: this log has no witness.
  const { stdout, stderr } = await run(process.execPath, args).catch((error) => {
    if (error.code === 10) return error as { stdout: string; stderr: string };
    throw error;
  });
  if (!stdout.startsWith('unwitnessed')) throw new Error(stdout);
  return costIn(stderr);
}
