/** A cancellable delay of `ms` milliseconds. */
export function after(ms: number): { readonly rings: Promise<void>; cancel(): void } {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const rings = new Promise<void>((settle) => {
    timer = setTimeout(settle, ms);
  });
  return { rings, cancel: () => clearTimeout(timer) };
}
