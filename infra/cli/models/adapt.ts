// auricle model adapt
import { ok } from '../../../shared/result.ts';
import { adaptRevision } from '../../pool/model-build/adapt/adapt.ts';
import { type BuildResult, problem } from '../../pool/model-build/problem.ts';
import type { Answer } from '../answer.ts';
import { readFlags, type Words } from './words.ts';

/** Share of the text where none is given. */
const WEIGHT = '0.5';
/** New words that are shown. */
const SHOWN = 10;

/** M8: adapts the language model of a revision to a text. The gates measure what it brings. */
export async function runAdapt(given: Words): Promise<BuildResult<Answer>> {
  const read = readFlags(given, ['out', 'weight']);
  if (!read.ok) return read;
  const [folder = '', text = ''] = given.operands;
  const { out, weight = WEIGHT } = read.value;
  if (out === undefined) return problem('written', 'missing --out DIR');
  if (!(Number(weight) > 0 && Number(weight) < 1)) return problem('written', `--weight ${weight}: between 0 and 1`);
  const made = await adaptRevision({ folder, text, out, weight: Number(weight) });
  if (!made.ok) return made;
  const { name, parts, sentences, words, added, unspellable, ngrams } = made.value;
  const more = added.length > SHOWN ? ` and ${added.length - SHOWN} more` : '';
  const lines = [
    `${out}: "${name}", ${words} words in ${sentences} sentences, ${ngrams.join(' + ')} n-grams`,
    `${added.length} new words${added.length > 0 ? `: ${added.slice(0, SHOWN).join(', ')}${more}` : ''}`,
    ...(unspellable > 0
      ? [`note: ${unspellable} words were left out: the model has no token for a letter or digit`]
      : []),
    `next: auricle model sign ${out} ${parts.join(' ')} --key FILE (the local stack: --as author)`,
  ];
  return ok({ exit: 0, text: lines.join('\n'), value: { folder: out, ...made.value } });
}
