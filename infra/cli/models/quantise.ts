// auricle model quantise
import process from 'node:process';
import { ok } from '../../../shared/result.ts';
import { type BuildResult, problem } from '../../pool/model-build/problem.ts';
import { quantise } from '../../pool/model-build/quantise/quantise.ts';
import { type Answer, unreachable, wrong } from '../answer.ts';
import { printLine } from '../environment.ts';
import { readPlace } from '../place.ts';
import { findToken } from '../token.ts';
import { keyFileOf, noKeyIn, readSigningKey } from './key.ts';
import { watchRevisions } from './watch.ts';
import { readFlags, type Words } from './words.ts';

/** A15, A22: writes an 8-bit model beside its source. The gates measure its loss of accuracy. */
export async function runQuantise(given: Words): Promise<BuildResult<Answer>> {
  if (given.flags.watch) return runWatch(given);
  const parsed = readFlags(given, ['out', 'static', 'calibrate', 'features', 'samples']);
  if (!parsed.ok) return parsed;
  const read = parsed.value;
  const [folder, ...more] = given.operands;
  const { out, calibrate, features, samples } = read;
  if (folder === undefined || out === undefined || more.length > 0)
    return problem('written', 'one FOLDER, and --out DIR');
  if ((read.static === '') !== (calibrate !== undefined))
    return problem('written', '--static and --calibrate DIR go together');
  if (calibrate === undefined && (features !== undefined || samples !== undefined))
    return problem('written', '--features and --samples say how to --calibrate DIR');
  if (samples !== undefined && !/^[1-9]\d{0,5}$/.test(samples))
    return problem('written', `--samples ${samples}: 1 to 999999`);
  const source = calibrate !== undefined && {
    folder: calibrate,
    ...(features !== undefined && { features }),
    ...(samples !== undefined && { count: Number(samples) }),
  };
  const made = await quantise({ folder, out, force: given.force, ...(source && { calibrate: source }) });
  if (!made.ok) return made;
  const { name, method, products, bytes, advice } = made.value;
  const lines = [
    `${made.value.folder}: "${name}", ${method}, ${products} products in 8 bits, ${bytes.before} → ${bytes.after} bytes`,
    made.value.digest,
    ...advice.map((line) => `note: ${line}`),
  ];
  return ok({ exit: 0, text: lines.join('\n'), value: made.value });
}

const watchFlags = ['edge', 'token', 'state', 'key', 'as', 'out', 'calibrate', 'samples'] as const;

/** Quantises revisions that missed their targets, as the edge lists them. */
async function runWatch(given: Words): Promise<BuildResult<Answer>> {
  const parsed = readFlags(given, watchFlags, ['models', 'watch', 'once']);
  if (!parsed.ok) return parsed;
  const read = parsed.value;
  const { out, calibrate, samples } = read;
  const place = readPlace({ edge: read.edge, state: read.state }, process.env);
  if ('problem' in place) return problem('written', place.problem);
  const { edge, state } = place;
  const file = keyFileOf({ key: read.key, as: read.as, state });
  const repositories = given.flags.models ?? [];
  if (out === undefined || file === undefined || given.operands.length === 0 || repositories.length === 0)
    return problem('written', '--watch wants MODEL…, --models DIR, --out DIR, and --key FILE or --as NAME');
  if (samples !== undefined && !/^[1-9]\d{0,5}$/.test(samples))
    return problem('written', `--samples ${samples}: 1 to 999999`);
  const key = await readSigningKey(file);
  if (!key) return problem('key', noKeyIn(file));
  const token = findToken({ ...place, token: read.token }, process.env);
  if (token === undefined) return ok(wrong('no token: give --token, or set AURICLE_TOKEN'));
  const source = calibrate !== undefined && {
    folder: calibrate,
    ...(samples !== undefined && { count: Number(samples) }),
  };
  try {
    const answered = await watchRevisions({
      edge,
      headers: { authorization: `Bearer ${token}` },
      models: given.operands,
      repositories,
      out,
      key,
      ...(source && { calibrate: source }),
      once: given.flags.once !== undefined,
      print: printLine,
    });
    return ok(answered);
  } catch (error) {
    return ok(unreachable(edge, error));
  }
}
