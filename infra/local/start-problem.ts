/** A problem that the user can fix, in one line. Any other exception is a bug. */
export class StartProblem extends Error {}
