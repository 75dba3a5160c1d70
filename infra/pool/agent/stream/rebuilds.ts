/** Lets at most so many rebuild their sequences at once; the others wait in order of arrival. */
export function createRebuilds(most: number) {
  let busy = 0;
  const waiting: (() => void)[] = [];

  function leave() {
    busy--;
    waiting.shift()?.();
  }

  return {
    /** Resolves with what gives the place back; at once with nothing to give back when `signal` has aborted. */
    enter(signal: AbortSignal): Promise<() => void> {
      return new Promise((resolve) => {
        const grant = () => {
          signal.removeEventListener('abort', gone);
          busy++;
          let left = false;
          resolve(() => {
            if (!left) leave();
            left = true;
          });
        };
        const gone = () => {
          const at = waiting.indexOf(grant);
          if (at >= 0) waiting.splice(at, 1);
          resolve(() => {});
        };
        if (signal.aborted) return gone();
        if (busy < most) return grant();
        signal.addEventListener('abort', gone, { once: true });
        waiting.push(grant);
      });
    },
    busy: () => busy,
  };
}

export type Rebuilds = ReturnType<typeof createRebuilds>;
