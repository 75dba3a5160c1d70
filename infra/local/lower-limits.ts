// Preloaded (`--import`) into a part of a stack with lowered limits, before the part reads them: a
// demonstration takes minutes instead of a day. Only the local stack has this; no setting of a deployable
// lowers what a gate requires.
import process from 'node:process';
import { z } from 'zod';
import { limits } from '../../shared/limits.ts';

const lowered = z.record(z.string(), z.number().positive()).parse(JSON.parse(process.env.AURICLE_LIMITS ?? '{}'));
for (const [name, value] of Object.entries(lowered)) {
  const limit: unknown = limits[name as keyof typeof limits];
  if (limit === undefined) throw new Error(`there is no limit ${name}`);
  Object.assign(limit as object, { value });
}
