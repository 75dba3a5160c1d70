// Lowers limits of one part of the local stack (`AURICLE_LIMITS`, JSON by name), so that a test of hours takes seconds. A
// preloaded module: it runs before the part reads a limit. No setting of a deployable does this.
import process from 'node:process';
import { z } from 'zod';
import { limits } from '../../shared/limits.ts';

const lowered = z.record(z.string(), z.number().positive()).parse(JSON.parse(process.env.AURICLE_LIMITS ?? '{}'));
for (const [name, value] of Object.entries(lowered)) {
  const limit: unknown = limits[name as keyof typeof limits];
  if (limit === undefined) throw new Error(`there is no limit ${name}`);
  Object.assign(limit as object, { value });
}
