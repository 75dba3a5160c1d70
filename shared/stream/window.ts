/** How far audio has gone to the other side, and how far that has taken it in. Positions in bytes. */
export interface Window {
  readonly sent: number;
  readonly heard: number;
}

export const openWindow = (position: number): Window => ({ sent: position, heard: position });

/**
 * May so many more bytes be sent: no more than `most` beyond what was heard. When nothing is under way a message goes in
 * any case, since one that is larger than the window would never go otherwise.
 */
export const maySend = ({ sent, heard }: Window, bytes: number, most: number): boolean =>
  sent === heard || sent + bytes - heard <= most;

export const afterSent = ({ sent, heard }: Window, bytes: number): Window => ({ sent: sent + bytes, heard });

/** `undefined` when the other side heard what was not sent. What is older than the last word changes nothing. */
export function afterHeard({ sent, heard }: Window, position: number): Window | undefined {
  return position > sent ? undefined : { sent, heard: Math.max(heard, position) };
}
