/** Frames of one token of a known text. */
export interface TokenSpan {
  readonly firstFrame: number;
  readonly lastFrame: number;
  /** Best natural-log probability of the token inside the span. */
  readonly logProb: number;
}

/**
 * The most likely way to emit `tokens` over all frames: Viterbi over the CTC states blank, t1, blank, t2, …, blank
 * (Graves et al. 2006). `idle` is a token that says nothing before the first other one. `undefined` when there are too
 * few frames for the text.
 */
export function align(
  logProbs: Float32Array,
  frames: number,
  width: number,
  tokens: readonly number[],
  blank: number,
  idle = blank,
): TokenSpan[] | undefined {
  const states = 2 * tokens.length + 1;
  const tokenAt = (state: number) => (state % 2 === 0 ? blank : (tokens[state >> 1] as number));
  // How many states back the best path came from: 0, 1 or 2.
  const from = new Uint8Array(frames * states);
  let before = new Float64Array(states).fill(Number.NEGATIVE_INFINITY);
  let now = new Float64Array(states);
  for (let frame = 0; frame < frames; frame++) {
    for (let state = 0; state < states; state++) {
      let best = before[state] as number;
      let back = 0;
      if (frame === 0) best = state < 2 ? 0 : Number.NEGATIVE_INFINITY;
      else {
        if (state >= 1 && (before[state - 1] as number) > best) {
          best = before[state - 1] as number;
          back = 1;
        }
        const mayJump = state % 2 === 1 && state >= 3 && tokenAt(state) !== tokenAt(state - 2);
        if (mayJump && (before[state - 2] as number) > best) {
          best = before[state - 2] as number;
          back = 2;
        }
      }
      const heard = logProbs[frame * width + tokenAt(state)] as number;
      now[state] = best + (state === 0 ? Math.max(heard, logProbs[frame * width + idle] as number) : heard);
      from[frame * states + state] = back;
    }
    [before, now] = [now, before];
  }

  const last = states - 1;
  let state = last > 0 && (before[last - 1] as number) > (before[last] as number) ? last - 1 : last;
  if (frames === 0 || before[state] === Number.NEGATIVE_INFINITY) return undefined;
  const spans: { firstFrame: number; lastFrame: number; logProb: number }[] = [];
  for (let frame = frames - 1; frame >= 0; frame--) {
    if (state % 2 === 1) {
      const logProb = logProbs[frame * width + tokenAt(state)] as number;
      const span = spans[state >> 1];
      if (span) {
        span.firstFrame = frame;
        span.logProb = Math.max(span.logProb, logProb);
      } else spans[state >> 1] = { firstFrame: frame, lastFrame: frame, logProb };
    }
    state -= from[frame * states + state] as number;
  }
  return spans.length === tokens.length && !spans.includes(undefined as never) ? spans : undefined;
}
