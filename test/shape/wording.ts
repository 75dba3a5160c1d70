import { isTypeScript, type Tree } from './tree.ts';

/** First words of a comment that hides its subject: CONTRIBUTING.md, "Words". */
const OBLIQUE = /^(Of|What|Who|Whose|Whom|Where|Which|Until|Besides?)\b/;
/** Persons in place of a component. */
const PERSONS = /\b([Nn]obody|[Ww]hoever|[Ss]omebody|[Aa]nybody|[Ee]verybody)\b/;

interface Comment {
  readonly file: string;
  readonly line: number;
  readonly text: string;
}

const BLOCK = /\/\*\*?([\s\S]*?)\*\/|((?:^[ \t]*\/\/[^\n]*(?:\n|$))+)/gm;
const MARKS = /^[ \t]*(?:\/\/|\*)[ \t]?/gm;

/** Returns the comments of the tree's TypeScript files; lines of `//` that follow each other are one. */
export function readComments(tree: Tree): Comment[] {
  const found: Comment[] = [];
  for (const [file, text] of tree) {
    if (!isTypeScript(file)) continue;
    for (const { 0: whole, 1: block, 2: lines, index } of text.matchAll(BLOCK)) {
      const line = text.slice(0, index).split('\n').length;
      const said = (block ?? lines ?? whole).replace(MARKS, '').replace(/\s+/g, ' ').trim();
      if (said !== '') found.push({ file, line, text: said });
    }
  }
  return found;
}

/** Returns the comments that open obliquely or name persons. */
export function findRiddles(tree: Tree): string[] {
  return readComments(tree)
    .filter(({ text }) => OBLIQUE.test(text) || PERSONS.test(text))
    .map(({ file, line, text }) => `${file}:${line}: ${text.slice(0, 80)}`);
}
