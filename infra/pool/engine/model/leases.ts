/** Counts the leases of a served version. */
export function createLeases() {
  let open = 0;
  let onDrained: (() => void) | undefined;
  return {
    take(): void {
      open++;
    },
    release(): void {
      open--;
      if (open === 0) onDrained?.();
    },
    /** Resolves once every lease is released. */
    drained(): Promise<void> {
      if (open === 0) return Promise.resolve();
      return new Promise((resolve) => {
        onDrained = resolve;
      });
    },
  };
}
