/**
 * The beginning of a marker with which the local storage emulator lists the blobs of a container by their
 * change: those that have changed after the number behind it, with a marker for the next listing. The
 * service itself has no such listing; it sends events.
 */
export const CHANGED_AFTER = 'changed-after:';
