// The edge that `deploy check` calls, with a token for each zone.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { jsonOf } from '../../../shared/json-text.ts';
import { type Answer, wrong } from '../answer.ts';
import type { Arguments } from '../options.ts';

/** A zone, and the credentials of its checks. */
export interface Target {
  /** Absent: the home zone of the token. */
  readonly zone: string | undefined;
  readonly token: string;
  /** Public key of the zone's log by the settings of the environment, base64. */
  readonly logKey: string | undefined;
}

/** Reads the address, tokens and keys of an environment from its folder. */
export function readFolder({ out }: Arguments, name: string): { edge: string; targets: Target[] } | Answer {
  const folder = path.resolve(out ?? path.join('deploy', name));
  const settings = (file: string, setting: string) =>
    new RegExp(`^${setting}=(.*)$`, 'm').exec(existsSync(file) ? readFileSync(file, 'utf8') : '')?.[1];
  const zones = existsSync(path.join(folder, 'zones')) ? readdirSync(path.join(folder, 'zones')) : [];
  const logs = z
    .record(z.string(), z.object({ key: z.string() }))
    .safeParse(jsonOf(settings(path.join(folder, 'edge.env'), 'AUDIT_LOGS') ?? ''));
  const edge = settings(path.join(folder, 'zones', zones[0] ?? '', 'functions.env'), 'EDGE_URL');
  if (edge === undefined) return wrong(`${folder} has no environment: run \`auricle deploy init\``);
  const targets = zones.map((zone) => ({
    zone,
    token: readFileSync(path.join(folder, 'zones', zone, 'check.token'), 'utf8').trim(),
    logKey: logs.data?.[zone]?.key,
  }));
  return { edge, targets };
}
