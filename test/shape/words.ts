import type { Tree } from './tree.ts';

/** Forbidden texts, with the reason. Each pattern is written so that it does not find itself. */
const forbidden: { pattern: RegExp; why: string }[] = [
  { pattern: /(?<![\w.-])\/(?:home|Users|root|work)\/[a-z][\w.-]*\/[\w.-]+/, why: 'a path of one machine' },
  { pattern: /\b(?:TODO|FIXME|XXX)[:(]/, why: 'unfinished: finish it or make it an issue' },
  { pattern: /"resolved":[ ]"http/, why: 'a registry host in the lockfile binds every install to it' },
  { pattern: /-----BEGIN [A-Z ]*PRIVATE[ ]KEY-----/, why: 'a private key' },
  { pattern: /\bresearch\/[a-z]+\.md\b/, why: 'a note that readers do not have' },
  { pattern: /\b(?:describe|it|test)\.only\(/, why: 'switches the other tests off' },
];

export function findForbiddenWords(tree: Tree): string[] {
  const problems: string[] = [];
  for (const [file, text] of tree) {
    for (const { pattern, why } of forbidden) {
      const found = pattern.exec(text);
      if (!found) continue;
      const line = text.slice(0, found.index).split('\n').length;
      problems.push(`${file}:${line}: "${found[0]}" (${why})`);
    }
  }
  return problems;
}
