// Preloaded (`--import`) into a part of a stack with lowered limits: it replaces constants as their modules
// load, so that a demonstration takes minutes instead of a day. Only the local stack has this; no setting of
// a deployable lowers what a gate requires.
import { existsSync } from 'node:fs';
import { registerHooks } from 'node:module';
import process from 'node:process';
import { z } from 'zod';

/** Value by name of the constant, by file of this tree. */
const lowered = z
  .record(z.string(), z.record(z.string(), z.number().positive()))
  .parse(JSON.parse(process.env.AURICLE_LIMITS ?? '{}'));

const byUrl = new Map(
  Object.entries(lowered).map(([file, values]) => {
    const url = new URL(`../../${file}`, import.meta.url);
    if (!existsSync(url)) throw new Error(`there is no file ${file}`);
    return [url.href, values];
  }),
);

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context);
    const values = byUrl.get(url);
    return values ? { ...loaded, source: lower(loaded.source, values) } : loaded;
  },
});

function lower(source: unknown, values: Readonly<Record<string, number>>): string {
  let text = typeof source === 'string' ? source : new TextDecoder().decode(source as Uint8Array);
  for (const [name, value] of Object.entries(values)) {
    const changed = text.replace(new RegExp(`(\\bconst ${name} = )[^;]+;`), `$1${value};`);
    if (changed === text) throw new Error(`there is no limit ${name}`);
    text = changed;
  }
  return text;
}
