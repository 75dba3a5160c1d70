// Loaded before a part whose stack was asked for it (`--import`), and before the part reads any bound: what takes a fleet a
// day takes a demonstration minutes. Only the local stack has this; no setting of a deployable lowers what a gate asks for.
import process from 'node:process';
import { z } from 'zod';
import { limits } from '../../shared/limits.ts';

const lowered = z.record(z.string(), z.number().positive()).parse(JSON.parse(process.env.AURICLE_LIMITS ?? '{}'));
for (const [name, value] of Object.entries(lowered)) {
  const limit: unknown = limits[name as keyof typeof limits];
  if (limit === undefined) throw new Error(`there is no limit ${name}`);
  Object.assign(limit as object, { value });
}
