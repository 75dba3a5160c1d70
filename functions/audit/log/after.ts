/** A cancellable delay of `ms` milliseconds. */
export function after(ms: number): { readonly elapsed: Promise<void>; cancel(): void } {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const elapsed = new Promise<void>((settle) => {
    timer = setTimeout(settle, ms);
  });
  return { elapsed, cancel: () => clearTimeout(timer) };
}
