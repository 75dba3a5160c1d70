// auricle model …: what can be done with revisions of models.
import { type Answer, wrong } from './answer.ts';
import type { Arguments } from './arguments.ts';
import { buildUsage } from './model-build.ts';
import { approve, promote, promoteUsages, takeover } from './model-promote.ts';
import type { Headers } from './model-registry.ts';
import { releaseUsages, releaseVerbs } from './model-release.ts';
import { signModel, signUsage, verifyModel, verifyUsage } from './model-sign.ts';

interface ModelVerb {
  readonly usage: string;
  /** Done on this machine alone: no edge is asked, and no token needed. */
  readonly local?: true;
  readonly run: (given: Arguments, headers: Headers) => Promise<Answer>;
}

const released = Object.entries(releaseVerbs).map(([name, run]): [string, ModelVerb] => [
  name,
  { usage: releaseUsages[name as keyof typeof releaseUsages], run },
]);

const verbs = new Map<string, ModelVerb>([
  ['sign', { usage: signUsage, run: signModel, local: true }],
  ['verify', { usage: verifyUsage, run: verifyModel, local: true }],
  ['promote', { usage: promoteUsages.promote, run: promote }],
  ['takeover', { usage: promoteUsages.takeover, run: takeover }],
  ['approve', { usage: promoteUsages.approve, run: approve }],
  ...released,
]);

export const modelUsage = [...verbs.values()].map(({ usage }) => usage).join('\n  ');

/** A verb that there is not is refused here, too. */
export const isLocal = ([verb = '']: readonly string[]): boolean => verbs.get(verb)?.local ?? !verbs.has(verb);

export async function model(given: Arguments, headers: Headers): Promise<Answer> {
  const verb = verbs.get(given.operands[0] ?? '');
  return verb ? verb.run(given, headers) : wrong(`${named(given.operands[0])}\n\n  ${buildUsage}\n  ${modelUsage}`);
}

const named = (verb: string | undefined): string =>
  verb === undefined ? 'auricle model VERB …' : `there is no "model ${verb}"`;
