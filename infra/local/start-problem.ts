/** Something the person in front of the stack can put right, said in one line. Anything else that is thrown is a bug. */
export class StartProblem extends Error {}
