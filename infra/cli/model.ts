// auricle model …: what can be done with revisions of models.
import { type Answer, wrong } from './answer.ts';
import type { Arguments } from './arguments.ts';
import { approve, promote, promoteUsages } from './model-promote.ts';
import type { Headers } from './model-registry.ts';
import { releaseUsages, releaseVerbs } from './model-release.ts';
import { signModel, signUsage, verifyModel, verifyUsage } from './model-sign.ts';

interface ModelVerb {
  readonly usage: string;
  readonly run: (given: Arguments, headers: Headers) => Promise<Answer>;
}

const released = Object.entries(releaseVerbs).map(([name, run]): [string, ModelVerb] => [
  name,
  { usage: releaseUsages[name as keyof typeof releaseUsages], run },
]);

const verbs = new Map<string, ModelVerb>([
  ['sign', { usage: signUsage, run: signModel }],
  ['verify', { usage: verifyUsage, run: verifyModel }],
  ['promote', { usage: promoteUsages.promote, run: promote }],
  ['approve', { usage: promoteUsages.approve, run: approve }],
  ...released,
]);

export const modelUsage = [...verbs.values()].map(({ usage }) => usage).join('\n  ');

export async function model(given: Arguments, headers: Headers): Promise<Answer> {
  const verb = verbs.get(given.operands[0] ?? '');
  return verb ? verb.run(given, headers) : wrong(`usage:\n  auricle ${modelUsage}`);
}
