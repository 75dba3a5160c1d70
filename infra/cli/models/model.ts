// auricle model …: dispatches to the commands on revisions.
import type { Answer } from '../answer.ts';
import type { Arguments } from '../options.ts';
import { approve, promote, takeover } from './promote.ts';
import { pushModel } from './push.ts';
import type { Headers } from './registry.ts';
import { releaseVerbs } from './release.ts';
import { signModel, verifyModel } from './sign.ts';
import { where } from './tiers.ts';

type Run = (given: Arguments, headers: Headers) => Promise<Answer>;
const verbs: Readonly<Record<string, Run>> = {
  ...{ sign: signModel, verify: verifyModel, push: pushModel, promote, takeover, approve },
  ...releaseVerbs,
  where,
};

export async function model(given: Arguments, headers: Headers): Promise<Answer> {
  const [name = ''] = given.operands;
  const verb = Object.hasOwn(verbs, name) ? verbs[name] : undefined;
  if (!verb) throw new Error(`unknown command: model ${name}`);
  return verb(given, headers);
}
