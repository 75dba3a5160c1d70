// Operator commands, run in this process.
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Answer } from '../../infra/cli/answer.ts';
import { readArguments } from '../../infra/cli/arguments.ts';
import { findCommand } from '../../infra/cli/commands.ts';
import { buildModel } from '../../infra/cli/models/build.ts';
import { model } from '../../infra/cli/models/model.ts';
import type { Evidence } from '../../shared/registry/evidence.ts';
import type { Fleet } from './fleet.ts';

export interface Operator {
  /** `auricle model …`; throws when it does not end with 0. */
  run<Value>(...words: string[]): Promise<Value>;
  /** The same, whatever it ends with. */
  ask(...words: string[]): Promise<Answer>;
  /** Options that name the key of a signer, and a file of evidence. */
  as(signer: string): string[];
  evidence(pieces: readonly Evidence[]): string[];
}

export function operatorOf({ stack, state, folder }: Pick<Fleet, 'stack' | 'state' | 'folder'>): Operator {
  let files = 0;
  const ask = async (...words: string[]): Promise<Answer> => {
    if (findCommand(['model', ...words])?.own) return buildModel(words);
    const given = readArguments(['model', ...words, '--edge', stack.url]);
    if ('problem' in given) throw new Error(given.problem);
    return model(given, { authorization: `Bearer ${stack.token}` });
  };
  return {
    ask,
    async run<Value>(...words: string[]) {
      const answered = await ask(...words);
      if (answered.exit !== 0) throw new Error(`auricle model ${words.join(' ')}: ${answered.text}`);
      return answered.value as Value;
    },
    as: (signer) => ['--key', path.join(state, 'identity', 'signers', `${signer}.pem`)],
    evidence(pieces) {
      files += 1;
      const file = path.join(folder('evidence'), `${files}.json`);
      mkdirSync(path.dirname(file), { recursive: true });
      writeFileSync(file, JSON.stringify(pieces));
      return ['--evidence', file];
    },
  };
}
